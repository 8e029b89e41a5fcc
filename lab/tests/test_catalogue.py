"""The catalogue is valid, and a trainer writes the log that the lab expects."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LAB = Path(__file__).resolve().parent.parent
ANTIFREEZE = os.environ.get("ANTIFREEZE_BIN", LAB.parent / "target/release/antifreeze")
sys.dont_write_bytecode = True
sys.path.insert(0, str(LAB / "guest"))

from catalogue import CATALOGUE, SCENARIOS

SIZE = re.compile(r"[0-9]+[KMG%]")


class Catalogue(unittest.TestCase):
    def test_names_are_unique(self):
        self.assertEqual(len(SCENARIOS), len(CATALOGUE))

    def test_programs_exist_and_compile(self):
        for scenario in CATALOGUE:
            for program in filter(None, (scenario.program, scenario.neighbour)):
                with self.subTest(scenario=scenario.name, program=program[0]):
                    file = LAB / Path(program[0]).relative_to("/lab")
                    compile(file.read_text(), file, "exec")

    def test_fields_have_known_values(self):
        for scenario in CATALOGUE:
            with self.subTest(scenario=scenario.name):
                self.assertIn(scenario.can, {"catch", "save", "finish", "any"})
                self.assertIn(scenario.ends, {"normal", "cut", "crash", "reset"})
                self.assertIn(scenario.swap, {"disk", "zram", "none"})
                self.assertIn(scenario.flavour, {None, "bare", "systemd", "torch"})
                self.assertTrue(scenario.summary.endswith("."))

    def test_sizes_parse(self):
        for scenario in CATALOGUE:
            sizes = [scenario.shm] if scenario.shm else []
            if "--allow-swap" in scenario.flags:
                sizes.append(scenario.flags[scenario.flags.index("--allow-swap") + 1])
            for size in sizes:
                with self.subTest(scenario=scenario.name, size=size):
                    self.assertRegex(size, SIZE)


@unittest.skipUnless(Path(ANTIFREEZE).exists(), f"{ANTIFREEZE} is not built")
class LeakUnderBudget(unittest.TestCase):
    """One run for all tests, because the leak takes long."""

    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            log, save = Path(folder, "log"), Path(folder, "save")
            cls.status = subprocess.run(
                [ANTIFREEZE, "run", "--quiet", "--budget", "150M", "--"]
                + ["python3", LAB / "scenarios/leak.py"],
                env=os.environ
                | {
                    "LAB_LOG": str(log),
                    "LAB_SAVE": str(save),
                    "LAB_AVAILABLE": "150",
                    "ANTIFREEZE_HOME": str(Path(folder, "home")),
                    "PYTHONDONTWRITEBYTECODE": "1",
                },
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=120,
            ).returncode
            cls.log = [json.loads(line) for line in log.read_text().splitlines()]
            cls.saved = int(save.read_text())

    def entries(self, what):
        return [entry for entry in self.log if entry["what"] == what]

    def test_catches_and_finishes(self):
        self.assertEqual(self.status, 0)
        self.assertEqual(len(self.entries("caught")), 1)
        self.assertIn("MemoryError", self.entries("caught")[0]["error"])
        self.assertEqual(self.log[-1]["what"], "finished")

    def test_log_entries_are_in_order(self):
        order = [entry["what"] for entry in self.log if entry["what"] not in {"step", "saved"}]
        self.assertEqual(order, ["started", "steady", "onset", "caught", "finished"])
        times = [entry["t"] for entry in self.log]
        self.assertEqual(times, sorted(times))

    def test_counts_every_step(self):
        steps = [entry["n"] for entry in self.entries("step")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))

    def test_save_contains_the_last_step(self):
        self.assertEqual(self.saved, self.entries("step")[-1]["n"])
        self.assertEqual(self.saved, self.entries("saved")[-1]["n"])


if __name__ == "__main__":
    unittest.main()
