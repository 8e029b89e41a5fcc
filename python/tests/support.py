"""What the test modules share: skipping without a package or the program, and running scripts with the shim.

Every test module imports this one before `antifreeze`, because it puts the package on `sys.path`.
"""

import contextlib
import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PYTHON)

from antifreeze._shim import page

# The program, for tests that start a guard.
PROGRAM = os.environ.get("ANTIFREEZE_BIN")
# Environment of scripts: no log messages, no GPU.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1", "TF_ENABLE_ONEDNN_OPTS": "0"}

HEAD = 64
SLOTS = 4
SLOT = 4 * page.WORDS


def has(name):
    """Whether this interpreter has the package."""
    return importlib.util.find_spec(name) is not None


def needs(*names):
    """Skips a test or a class unless all packages are installed."""
    missing = [name for name in names if not has(name)]
    return unittest.skipIf(missing, f"there is no {', '.join(missing)}")


needs_program = unittest.skipUnless(PROGRAM, "ANTIFREEZE_BIN names no antifreeze")


class Scene:
    """A folder with a page, a run's folder, and the shim as the program installs it."""

    def __init__(self, case, **asked):
        """`asked` are words that the guard has written to each slot before the script starts."""
        holder = tempfile.TemporaryDirectory()
        case.addCleanup(holder.cleanup)
        self._case = case
        self.folder = holder.name
        self._page = os.path.join(self.folder, "page")
        with open(self._page, "wb") as file:
            head = struct.pack("=5I", page.MAGIC, page.VERSION, HEAD, SLOT, SLOTS)
            slot = [0] * page.WORDS
            for name, value in asked.items():
                slot[getattr(page, name)] = value
            file.write(head.ljust(HEAD, b"\0") + SLOTS * struct.pack(f"={page.WORDS}I", *slot))
        self.stub = os.path.join(self.folder, "shim/stub")
        os.makedirs(os.path.dirname(self.stub))
        os.symlink(os.path.join(PYTHON, "antifreeze/_stub"), self.stub)
        os.symlink(PYTHON, os.path.join(self.folder, "shim/library"))
        self.run_folder = os.path.join(self.folder, "run")
        os.mkdir(self.run_folder)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        return path

    def run(self, text, *arguments, python=sys.executable, timeout=180, **environment):
        script = self.write("train.py", text)
        return self.run_command([python, script, *arguments], timeout, **environment)

    def run_command(self, command, timeout=180, **environment):
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=timeout,
            env=self._environment(environment),
        )

    def start(self, text, **environment):
        """Starts the script and returns its process."""
        script = self.write("train.py", text)
        process = subprocess.Popen(
            [sys.executable, script], cwd=self.folder, text=True, env=self._environment(environment),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self._case.addCleanup(process.kill)
        return process

    def _environment(self, more):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {
            **inherited, "PYTHONPATH": self.stub, "ANTIFREEZE_PAGE": self._page,
            "ANTIFREEZE_RUN": self.run_folder, "ANTIFREEZE_SAVES": os.path.join(self.folder, "saves"),
            "OMP_NUM_THREADS": "1", **more,
        }

    def ask_to_look(self):
        """Requests a memory sample as the guard does: increments the count of every listening slot and sends SIGURG."""
        with open(self._page, "r+b") as file:
            for number in range(SLOTS):
                start = HEAD + number * SLOT
                file.seek(start)
                words = list(struct.unpack(f"={page.WORDS}I", file.read(SLOT)))
                if words[page.PID] and words[page.LISTENS]:
                    file.seek(start + 4 * page.LOOK_ASKED)
                    file.write(struct.pack("=I", words[page.LOOK_ASKED] + 1))
                    file.flush()
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(words[page.PID], signal.SIGURG)

    def trainers(self):
        """Yields the fields of each claimed slot of the page."""
        with open(self._page, "rb") as file:
            content = file.read()
        for number in range(SLOTS):
            words = struct.unpack_from(f"={page.WORDS}I", content, HEAD + number * SLOT)
            if words[page.PID]:
                yield {
                    "steps": words[page.STEPS], "batch": words[page.BATCH], "phase": words[page.PHASE],
                    "saved": words[page.SAVE_ANSWERED], "stopped": words[page.STOP_ANSWERED],
                }

    def said(self, what=None):
        """Returns the events of all processes, in order."""
        lines = []
        for name in sorted(os.listdir(self.run_folder)):
            with open(os.path.join(self.run_folder, name)) as file:
                lines += [json.loads(line) for line in file]
        return [line for line in lines if what is None or line["what"] == what]
