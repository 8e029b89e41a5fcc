"""CPython, in every version and layout that is installed."""

from __future__ import annotations

import glob
import os
import re
from typing import List

from ..entry import Entry, Send
from .initial_state import shell
from .interpreter import PYTHON

#: Says which interpreter it is and what a script can see of its start.
SHOW_START = (
    "import sys, os, signal\n"
    "print(sys.version.split()[0], sys.argv, sys.flags)\n"
    "print(sys.path, sorted(name for name in sys.modules if 'antifreeze' in name))\n"
    "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGTERM))\n"
    "sys.stderr.write('to stderr\\n')\n"
    "sys.exit(3)\n"
)


def installed() -> List[str]:
    """Every CPython of this machine, each version once."""
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    found = {}
    for pattern in ("/usr/bin/python[23].*", "/usr/local/bin/python[23].*", f"{root}/versions/*/bin/python[23].*"):
        for path in sorted(glob.glob(pattern)):
            if re.fullmatch(r"python[23]\.\d+", os.path.basename(path)):
                found[path] = path
    return sorted(found)


def label(path: str) -> str:
    """The version, and which installation it is."""
    version = re.search(r"versions/([^/]+)/", path)
    return f"python {version[1]}" if version else path


ENTRIES = [
    *(
        Entry(f"{label(path)} from standard input", (path, "-", "argument"), needs=(path,), stdin=SHOW_START.encode())
        for path in installed()
    ),
    Entry("python -c", (PYTHON, "-c", SHOW_START, "argument"), needs=(PYTHON,)),
    Entry("python -m", (PYTHON, "-m", "json.tool"), needs=(PYTHON,), stdin=b'{"a": 1}'),
    Entry("python -I -S -E", (PYTHON, "-I", "-S", "-E", "-c", SHOW_START), needs=(PYTHON,)),
    Entry("python -X dev", (PYTHON, "-X", "dev", "-W", "error", "-c", SHOW_START), needs=(PYTHON,)),
    Entry("python with a PYTHONPATH", (PYTHON, "-c", SHOW_START), needs=(PYTHON,), env={"PYTHONPATH": "/nowhere"}),
    Entry(
        "a sitecustomize of the user",
        (PYTHON, "-c", SHOW_START),
        needs=(PYTHON,),
        brings=("sitecustomize.py",),
        env={"PYTHONPATH": "."},
    ),
    Entry("python without standard input", (PYTHON, "-c", SHOW_START), needs=(PYTHON,), around=shell("exec <&-;")),
    Entry("python without standard output", (PYTHON, "-c", SHOW_START), needs=(PYTHON,), around=shell("exec >&-;")),
    Entry("python without standard error", (PYTHON, "-c", SHOW_START), needs=(PYTHON,), around=shell("exec 2>&-;")),
    Entry("python on a terminal", (PYTHON, "-c", SHOW_START), needs=(PYTHON,), terminal=True),
    Entry("a traceback", (PYTHON, "raises.py"), needs=(PYTHON,), brings=("raises.py",)),
    Entry("a syntax error", (PYTHON, "-c", "def"), needs=(PYTHON,)),
    Entry(
        "an import that fails",
        (PYTHON, "-c", "import torch.nowhere"),
        needs=(PYTHON, "module torch"),
        loud=False,
        heavy=True,
    ),
    Entry(
        "a venv",
        ("bash", "venv.sh", PYTHON),
        needs=(PYTHON,),
        brings=("venv.sh",),
        masks=(r"\d+\.\d+ s",),
        heavy=True,
    ),
    Entry("a layout as of conda", ("bash", "conda.sh", PYTHON), needs=(PYTHON,), brings=("conda.sh",)),
    Entry(
        "pytest with workers",
        (PYTHON, "-B", "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "-q", "test_workers.py"),
        needs=(PYTHON, "module xdist"),
        brings=("test_workers.py",),
        # Which worker answers first, and how long it took.
        masks=(r"\[gw\d+\] .*", r"in \d+\.\d+s", r"[.F]{5,} +\[.*", r"(initialized|ready|created): .*"),
        heavy=True,
    ),
    Entry("a shim of pyenv", ("python3", "-c", SHOW_START), needs=("pyenv", "python3")),
    Entry("a subprocess pipeline", (PYTHON, "pipeline.py"), needs=(PYTHON,), brings=("pipeline.py",)),
    Entry("multiprocessing with fork", (PYTHON, "pools.py", "fork"), needs=(PYTHON,), brings=("pools.py",)),
    Entry("multiprocessing with spawn", (PYTHON, "pools.py", "spawn"), needs=(PYTHON,), brings=("pools.py",)),
    Entry("multiprocessing with forkserver", (PYTHON, "pools.py", "forkserver"), needs=(PYTHON,), brings=("pools.py",)),
    Entry("concurrent.futures", (PYTHON, "futures.py"), needs=(PYTHON,), brings=("futures.py",)),
    Entry("asyncio with subprocesses", (PYTHON, "asynchronous.py"), needs=(PYTHON,), brings=("asynchronous.py",)),
    Entry("a program that sets its own limits", (PYTHON, "limits.py"), needs=(PYTHON,), brings=("limits.py",)),
    Entry(
        "a MemoryError of the program's own limit",
        (PYTHON, "own_limit.py"),
        needs=(PYTHON,),
        brings=("own_limit.py",),
    ),
    Entry("os.fork and os.exec", (PYTHON, "forks.py"), needs=(PYTHON,), brings=("forks.py",)),
    Entry("a daemon in Python", (PYTHON, "daemon.py"), needs=(PYTHON,), brings=("daemon.py",)),
    Entry("threads", (PYTHON, "threads.py"), needs=(PYTHON,), brings=("threads.py",)),
    Entry(
        "an abort with faulthandler",
        (PYTHON, "-X", "faulthandler", "-c", "import os; os.abort()"),
        needs=(PYTHON,),
        masks=(r"0x[0-9a-f]+",),
    ),
    Entry(
        "input() on a terminal",
        (PYTHON, "-c", "print('ready'); print('got', input())"),
        needs=(PYTHON,),
        terminal=True,
        sends=(Send(typed=b"typed\n"),),
    ),
]
