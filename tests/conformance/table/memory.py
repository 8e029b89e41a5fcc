"""Programs that reserve much, bring an allocator of their own, or have a sanitizer."""

from __future__ import annotations

import glob
from typing import List, Optional

from ..entry import Entry, KnownDifference
from .interpreter import PYTHON

SYSTEM_PYTHON = "/usr/bin/python3"
#: Allocates in a Python of the system, in threads and in a child.
ALLOCATES = (
    "import os, threading\n"
    "def work(): print(sum(len(bytes(n * 1000)) for n in range(500)))\n"
    "threads = [threading.Thread(target=work) for _ in range(4)]\n"
    "for thread in threads: thread.start(); thread.join()\n"
    "child = os.fork()\n"
    "if child == 0: bytearray(30_000_000); os._exit(4)\n"
    "print(os.waitpid(child, 0)[1])\n"
)
NO_CUSHION = "without the cushion, reserved mappings cannot be distinguished (docs/architecture.md)"
#: A budget in the environment holds for antifreeze alone.
BUDGET = {"ANTIFREEZE_BUDGET": "1GB"}


def library(name: str) -> Optional[str]:
    """The path of a library of the system or the compiler."""
    found = sorted(glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/gcc/*/*/{name}"))
    return found[0] if found else None


def allocator(name: str, pattern: str) -> List[Entry]:
    path = library(pattern) or f"/usr/lib/{pattern}"
    need = f"file {path}"
    return [
        Entry(
            f"{name}, preloaded",
            (SYSTEM_PYTHON, "-I", "-c", ALLOCATES),
            env={"LD_PRELOAD": path},
            needs=(SYSTEM_PYTHON, need),
        ),
        Entry(
            f"{name}, linked",
            ("sh", "-c", 'cc -O1 -o made allocates.c -pthread "$0" && ./made', path),
            brings=("allocates.c",),
            needs=("cc", need),
        ),
    ]


def sanitizer(name: str, library_pattern: str, *options: str) -> Entry:
    return Entry(
        f"a program with {name}",
        ("sh", "-c", 'cc -O1 -g "$@" -o made allocates.c -pthread && ./made', "sh", *options),
        brings=("allocates.c",),
        needs=("cc", f"file {library(library_pattern) or library_pattern}"),
        heavy=True,
    )


def chromium(name: str, **changes: object) -> Entry:
    return Entry(
        name,
        (
            "sh",
            "-c",
            'mkdir "$TMPDIR/made"; HOME="$TMPDIR/made" TMPDIR="$TMPDIR/made" '
            "chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
            "--disable-background-networking --disable-component-update --disable-sync "
            '--user-data-dir="$TMPDIR/made/profile" --dump-dom "file://$PWD/page.html" 2>/dev/null; '
            'status=$?; rm -rf "$TMPDIR/made"; exit $status',
        ),
        brings=("page.html",),
        needs=("chromium",),
        heavy=True,
        **changes,  # type: ignore[arg-type]
    )


ENTRIES = [
    Entry("large reservations and stacks", ("reserves",), needs=("reserves",)),
    Entry("large reservations and stacks under a budget", ("reserves",), needs=("reserves",), env=BUDGET),
    Entry(
        "large reservations of a static program",
        ("reserves-static",),
        needs=("reserves-static",),
        known=(
            KnownDifference("status", "exit status 1", NO_CUSHION),
            KnownDifference("stdout", r"30 GB: Cannot allocate memory\n(.|\n)*", NO_CUSHION),
        ),
    ),
    Entry("arrays of zeros", (PYTHON, "zeros.py"), brings=("zeros.py",), needs=(PYTHON,)),
    Entry("numpy.zeros", (PYTHON, "-c", "import numpy as np; print([np.zeros(10**9).nbytes for _ in range(4)])"),
          needs=(PYTHON, "module numpy")),
    *(
        Entry(
            f"a filter of {call} by {by}",
            (SYSTEM_PYTHON, "-I", "filters.py", call, by),
            brings=("filters.py",),
            needs=(SYSTEM_PYTHON,),
        )
        for call in ("openat", "prlimit64")
        for by in ("prctl", "seccomp")
    ),
    *allocator("jemalloc", "libjemalloc.so.2"),
    *allocator("tcmalloc", "libtcmalloc_minimal.so.4"),
    *allocator("mimalloc", "libmimalloc.so.*"),
    sanitizer("AddressSanitizer", "libasan.so", "-fsanitize=address"),
    sanitizer("AddressSanitizer in the executable", "libasan.a", "-fsanitize=address", "-static-libasan"),
    sanitizer("ThreadSanitizer", "libtsan.so", "-fsanitize=thread"),
    sanitizer("LeakSanitizer", "liblsan.so", "-fsanitize=leak"),
    sanitizer("UndefinedBehaviorSanitizer", "libubsan.so", "-fsanitize=undefined"),
    Entry(
        "a Python with AddressSanitizer preloaded",
        (SYSTEM_PYTHON, "-I", "-c", ALLOCATES),
        env={"LD_PRELOAD": library("libasan.so") or "", "ASAN_OPTIONS": "detect_leaks=0"},
        needs=(SYSTEM_PYTHON, f"file {library('libasan.so') or 'libasan.so'}"),
        heavy=True,
    ),
    chromium("chromium"),
    chromium("chromium under a budget", env={"ANTIFREEZE_BUDGET": "2GB"}),
]
