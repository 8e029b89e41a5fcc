"""Every example in a docstring runs, each module in a process of its own, and a folder that may be written to."""

import os
import subprocess
import sys
import tempfile
import unittest

from support import PROGRAM, PYTHON, QUIET, needs, needs_program
import antifreeze

# What is told of without one: an error, and what `guard` returns.
WITHOUT = {"MemoryPressure", "Guard"}
RUN = """
import doctest, importlib, sys
ran = doctest.testmod(importlib.import_module(sys.argv[1]), optionflags=doctest.ELLIPSIS)
print(ran.attempted, "examples")
sys.exit(ran.failed > 0)
"""


class ExamplesTest(unittest.TestCase):
    def run_examples(self, *names):
        for name in names:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANTIFREEZE_")}
                environment = {
                    **inherited, **QUIET, "PYTHONPATH": PYTHON, "ANTIFREEZE_HOME": folder, "ANTIFREEZE_BIN": PROGRAM or "",
                }
                ran = subprocess.run(
                    [sys.executable, "-c", RUN, name], cwd=folder, env=environment, capture_output=True, text=True,
                    timeout=180,
                )
                self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
                self.assertNotIn("0 examples", ran.stdout.split("\n"))

    def test_of_the_standard_library_alone(self):
        self.run_examples("antifreeze._loader", "antifreeze._sizes", "antifreeze._tools")

    @needs_program
    def test_of_the_guard(self):
        self.run_examples("antifreeze._attach")

    @needs("torch")
    def test_of_torch(self):
        self.run_examples("antifreeze", "antifreeze._split")

    @needs("lightning", "transformers", "accelerate", "keras", "tensorflow")
    def test_of_the_callbacks(self):
        self.run_examples("antifreeze.keras", "antifreeze.lightning", "antifreeze.transformers")

    def test_everything_has_one(self):
        for name in antifreeze.__all__:
            if name not in WITHOUT:
                self.assertIn(">>>", getattr(antifreeze, name).__doc__, name)


if __name__ == "__main__":
    unittest.main()
