"""`%load_ext antifreeze`, in a real kernel of Jupyter."""

import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest

from support import PROGRAM, PYTHON, needs_program

# Bytes that a kernel may hold more than before, once a cell has failed.
MORE = 60_000_000

SETUP = """
import os, time, asyncio
kept = {"epoch": 3}
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
"""
# Each exhausts the budget, in a function whose locals the traceback keeps.
GREEDY = {
    "one large request": """
        def load():
            half = bytearray(200_000_000)
            half[::4096] = b"x" * len(half[::4096])
            return half, bytearray(3_000_000_000)
        load()
    """,
    "pieces": """
        def load():
            pieces = []
            while True:
                pieces.append(bytearray(1_000_000))
        load()
    """,
    "small things": """
        def load():
            things = []
            while True:
                things.append([float(len(things))])
        load()
    """,
    "large arrays": """
        import numpy
        def load():
            arrays = []
            while True:
                arrays.append(numpy.ones(5_000_000))
        load()
    """,
}
# As the guard would: asks the kernel's process to end what it is at.
ASKED = """
from antifreeze._shim import page
from antifreeze._shim.trainer import get_trainer
get_trainer()._words[page.STOP_ASKED] += 1
"""


class Kernel:
    """Runs cells, one after the other."""

    def __init__(self, case, **more):
        from jupyter_client.manager import start_new_kernel

        # Whoever guarded it may still be writing its verdict when it is removed.
        folder = tempfile.mkdtemp()
        case.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ANTIFREEZE_")}
        environment = {
            **inherited, "PYTHONPATH": PYTHON, "ANTIFREEZE_HOME": folder, "ANTIFREEZE_BIN": PROGRAM,
            "OMP_NUM_THREADS": "1", **more,
        }
        self._environment = environment
        self._manager, self._client = start_new_kernel(kernel_name="python3", env=environment, cwd=folder)
        case.addCleanup(self._end)

    def _end(self):
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def shut_down(self):
        """As a person does, so that what is to run at the end of the kernel does."""
        self._client.shutdown()
        self._manager.finish_shutdown(waittime=60)

    def antifreeze(self, *arguments):
        ran = subprocess.run([PROGRAM, *arguments], env=self._environment, capture_output=True, text=True, timeout=60)
        return ran.stdout + ran.stderr

    def begin(self, cell):
        return self._client.execute(textwrap.dedent(cell))

    def finish(self, number):
        """(what the last expression is, the name of the exception, what was shown of it)"""
        value = name = None
        shown = ""
        while True:
            message = self._next()
            if message["parent_header"].get("msg_id") != number:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "execute_result":
                value = content["data"]["text/plain"]
            elif kind == "error":
                name, shown = content["ename"], "\n".join(content["traceback"])
            elif kind == "status" and content["execution_state"] == "idle":
                # Whoever asks for more before the reply has come may never be heard (ipython/ipykernel#1554).
                self._client.get_shell_msg(timeout=60)
                return value, name, re.sub("\x1b\\[[0-9;]*m", "", shown)

    def _next(self):
        try:
            return self._client.get_iopub_msg(timeout=120)
        except queue.Empty:
            pid = self._manager.provisioner.pid
            with open(f"/proc/{pid}/status") as file:
                raise AssertionError("the kernel says nothing:\n" + file.read()) from None

    def run(self, cell):
        return self.finish(self.begin(cell))

    def value(self, cell):
        value, name, shown = self.run(cell)
        if name is not None:
            raise AssertionError(shown)
        return eval(value)


@needs_program
class NotebookTest(unittest.TestCase):
    def start(self, **more):
        kernel = Kernel(self, **more)
        self.assertIsNone(kernel.run(SETUP)[1])
        self.assertIsNone(kernel.run("%load_ext antifreeze")[1])
        return kernel

    def test_cells_that_take_too_much_end_and_the_kernel_lives(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        kernel.run("import numpy")
        pid, before = kernel.value("os.getpid(), resident()")
        for turn in range(3):
            for name, cell in GREEDY.items():
                with self.subTest(name, turn=turn):
                    _, error, shown = kernel.run(cell)
                    self.assertIn(error, ("MemoryError", "MemoryPressure", "_ArrayMemoryError"), shown)
                    self.assertIn("The kernel and its variables are still here", shown)
                    self.assertIn("load()", shown)
                    self.assertNotIn("_shim", shown)
                    now, kept, after = kernel.value("os.getpid(), kept, resident()")
                    self.assertEqual((now, kept), (pid, {"epoch": 3}))
                    self.assertLess(after, before + MORE)

    def test_what_is_large_is_named(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        kernel.run("history = [bytearray(1_000_000) for _ in range(100)]")
        _, error, shown = kernel.run("bytearray(3_000_000_000)")
        self.assertEqual(error, "MemoryError")
        self.assertIn("Largest: history (100 MB)", shown)
        self.assertIn("del history", shown)

    def test_the_record_names_cells_and_the_end_of_the_kernel_is_no_failure(self):
        kernel = self.start(ANTIFREEZE_BUDGET="900MB")
        self.assertIsNone(kernel.run("import jax.numpy\nkept = []")[1])
        _, error, shown = kernel.run("""
            def load():
                import numpy
                while True:
                    kept.append(numpy.ones(1_000_000))
                    time.sleep(0.02)
            load()
        """)
        self.assertIn(error, ("MemoryError", "MemoryPressure", "_ArrayMemoryError"), shown)
        number = kernel.value("len(In) - 2")
        run = kernel.value("os.environ['ANTIFREEZE_RUN']")
        kernel.shut_down()
        for command in (["runs", "show"], ["explain"], ["explain", "--json"]):
            told = kernel.antifreeze(*command, os.path.basename(run))
            with self.subTest(command, told=told):
                self.assertNotIn("/ipykernel_", told)
                self.assertNotIn("reaching its budget", told)
                self.assertNotIn("antifreeze run", told)
        words = " ".join(kernel.antifreeze("explain", os.path.basename(run)).split())
        self.assertIn("ended well after", words)
        self.assertIn(f"cell {number}, line 4", words)

    def test_what_gives_results_back_is_said(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        before = kernel.value("resident()")
        kernel.run("class Result:\n    def __init__(self): self.held = bytearray(b'x') * 200_000_000\nResult()")
        _, error, shown = kernel.run("bytearray(3_000_000_000)")
        self.assertEqual(error, "MemoryError")
        self.assertNotIn("del", shown)
        self.assertIn("IPython keeps displayed results (200 MB): %reset -f out", shown)
        kernel.run("%reset -f out")
        self.assertLess(kernel.value("resident()"), before + MORE)

    def test_an_error_that_was_raised_for_want_of_memory(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        kernel.run("""
            def load():
                held = bytearray(b"x") * 200_000_000
                return held, bytearray(3_000_000_000)
        """)
        before = kernel.value("resident()")
        for answer in (
            "raise ValueError('training failed') from error", "{}['nothing']",
            "raise ExceptionGroup('several', [error])",
        ):
            with self.subTest(answer):
                number = kernel.begin(f"try: load()\nexcept MemoryError as error: {answer}")
                _, error, shown = kernel.finish(number)
                if "Group" not in answer:
                    self.assertIn(error, ("ValueError", "KeyError"))
                    self.assertIn("The kernel and its variables are still here", shown)
                self.assertLess(kernel.value("resident()"), before + MORE)

    def test_it_can_be_loaded_anew(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        kernel.run("import antifreeze\nbefore = antifreeze.MemoryPressure")
        self.assertIsNone(kernel.run("%reload_ext antifreeze")[1])
        self.assertTrue(kernel.value("antifreeze.MemoryPressure is before"))
        _, error, shown = kernel.run(ASKED + """
import signal
try:
    os.kill(os.getpid(), signal.SIGURG)
    time.sleep(60)
except antifreeze.MemoryPressure:
    caught = True
""")
        self.assertIsNone(error, shown)
        self.assertTrue(kernel.value("caught"))

    def test_nothing_is_raised_while_it_idles_or_awaits(self):
        kernel = self.start()
        pid = kernel.value("os.getpid()")
        kernel.run(ASKED)
        for _ in range(3):
            os.kill(pid, signal.SIGURG)
        self.assertEqual(kernel.value("kept"), {"epoch": 3})

        # The cell has itself interrupted: from outside nobody knows where it is at.
        def interrupted(cell):
            return kernel.run(ASKED + "import signal\ninterrupt = os.getpid(), signal.SIGURG\n" + cell)

        later = "asyncio.get_running_loop().call_later(0.2, os.kill, *interrupt)\n"
        value, error, shown = interrupted(later + "await asyncio.sleep(1)\n'slept'")
        self.assertEqual((value, error), ("'slept'", None), shown)
        _, error, shown = interrupted("await asyncio.sleep(0)\nos.kill(*interrupt)\ntime.sleep(60)")
        self.assertEqual(error, "MemoryPressure", shown)
        self.assertEqual(kernel.value("kept"), {"epoch": 3})
        _, error, shown = interrupted("import threading\nthreading.Timer(0.5, os.kill, interrupt).start()\ntime.sleep(60)")
        self.assertEqual(error, "MemoryPressure", shown)
        self.assertIn("time.sleep(60)", shown)
        self.assertEqual(kernel.value("kept"), {"epoch": 3})

    def test_other_errors_are_shown_as_ever(self):
        kernel = self.start()
        plain = Kernel(self)
        cell = "def divide(x):\n    return 1 / x\ndivide(0)"
        place = re.compile(r"In\[\d+\]")
        here, there = (place.sub("In", one.run(cell)[2]) for one in (kernel, plain))
        self.assertEqual(here, there)
        self.assertIn("ZeroDivisionError", here)

    def test_it_can_be_unloaded(self):
        kernel = self.start(ANTIFREEZE_BUDGET="700MB")
        limit = "__import__('resource').getrlimit(2)[0]"
        self.assertGreater(kernel.value(limit), 0)
        kernel.run("%unload_ext antifreeze")
        self.assertEqual(kernel.value(limit), -1)
        _, error, shown = kernel.run("raise MemoryError('of my own')")
        self.assertEqual(error, "MemoryError")
        self.assertNotIn("antifreeze", shown)
        # And loaded again.
        kernel.run("%load_ext antifreeze")
        self.assertGreater(kernel.value(limit), 0)

    def test_torch_and_a_loop_in_a_cell(self):
        kernel = self.start(ANTIFREEZE_BUDGET="2GB")
        kernel.run("import torch\nmodel = torch.nn.Linear(10, 10)")
        for turn in range(3):
            _, error, shown = kernel.run("torch.ones(2_000_000_000)")
            self.assertEqual(error, "RuntimeError", shown)
            self.assertIn("The kernel and its variables are still here", shown)
            self.assertEqual(kernel.value("list(model.weight.shape)"), [10, 10])

    def test_jax_and_tensorflow(self):
        # The allocator of oneDNN keeps what it has taken.
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}
        for begin, piece in (
            ("import jax.numpy as lib", "(lib.ones(2_000_000) * 2).block_until_ready()"),
            ("import tensorflow as lib", "lib.random.normal((2_000_000,))"),
        ):
            kernel = self.start(ANTIFREEZE_BUDGET="2GB", **quiet)
            self.assertIsNone(kernel.run(f"{begin}\nlib.ones(10)")[1])
            pid, before = kernel.value("os.getpid(), resident()")
            leak = f"""
                def load():
                    held = []
                    while True:
                        held.append({piece})
                        time.sleep(0.01)
                load()
            """
            for cell in ("lib.ones(1_000_000_000) * 2", leak):
                with self.subTest(begin, cell=cell):
                    _, error, shown = kernel.run(cell)
                    self.assertIn("The kernel and its variables are still here", shown, error)
                    now, kept, after = kernel.value("os.getpid(), kept, resident()")
                    self.assertEqual((now, kept), (pid, {"epoch": 3}))
                    self.assertLess(after, before + 4 * MORE)

    def test_a_notebook_that_is_run_by_nbconvert(self):
        cells = ["%load_ext antifreeze\nkept = 42", "bytearray(3_000_000_000)", "print('kept', kept)"]
        notebook = {
            "nbformat": 4, "nbformat_minor": 5, "metadata": {},
            "cells": [
                {
                    "cell_type": "code", "id": str(number), "metadata": {}, "outputs": [], "source": cell,
                    "execution_count": None,
                }
                for number, cell in enumerate(cells)
            ],
        }
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "train.ipynb"), "w") as file:
                json.dump(notebook, file)
            ran = subprocess.run(
                [
                    sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--allow-errors", "--stdout",
                    "train.ipynb",
                ],
                cwd=folder, capture_output=True, text=True, timeout=120,
                env={**os.environ, "PYTHONPATH": PYTHON, "ANTIFREEZE_HOME": folder, "ANTIFREEZE_BUDGET": "700MB"},
            )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        outputs = [cell["outputs"] for cell in json.loads(ran.stdout)["cells"]]
        self.assertIn("The kernel and its variables are still here", "".join(outputs[1][0]["traceback"]))
        self.assertEqual("".join(outputs[2][0]["text"]), "kept 42\n")


if __name__ == "__main__":
    unittest.main()
