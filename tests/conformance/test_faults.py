"""The suite fails where it should. Scripts that stand in for antifreeze start the command with one fault each, and the
suite has to name the aspect that differs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import unittest
from pathlib import Path
from typing import Set, Tuple

from . import needs
from .entry import Entry, KnownDifference, Send
from .folders import Folders
from .observe import OWN_LINES, PRIVATE_FOLDERS, private_folders
from .suite import examine

#: Takes the arguments up to `--` away, as if antifreeze had understood them.
PRELUDE = '#!/bin/bash\nwhile [ "$1" != -- ]; do quiet=$1; shift; done; shift\n'

ECHO = Entry("echo", ("sh", "-c", "echo out; echo err >&2; exit 3"))
FACTS = Entry("facts", ("facts",), facts=True)
NICE = KnownDifference("niceness", "10", "as documented")

#: A fault, the entry that is run, and the aspects that have to be named.
FAULTS: Tuple[Tuple[str, str, Entry, Set[str]], ...] = (
    ("no fault", 'exec "$@"', ECHO, set()),
    ("no fault in the initial state", 'exec "$@"', FACTS, set()),
    ("a line of its own without --quiet", '[ "$quiet" = run ] && echo "antifreeze: on" >&2; exec "$@"', ECHO, set()),
    ("a line of its own with --quiet", 'echo "antifreeze: on" >&2; exec "$@"', ECHO, {OWN_LINES}),
    ("another line on standard error", 'echo note >&2; exec "$@"', ECHO, {"stderr"}),
    ("a line on standard output", 'echo "antifreeze: on"; exec "$@"', ECHO, {"stdout"}),
    ("a lost line break", 'printf %s "$("$@")"; exit 3', ECHO, {"stdout"}),
    ("joined streams", '"$@" 2>&1; exit 3', ECHO, {"stdout", "stderr"}),
    ("another exit status", '"$@"; exit 1', ECHO, {"status"}),
    ("a file in the working folder", 'touch left; exec "$@"', ECHO, {"file work/left"}),
    ("a file in the home folder", 'touch ~/left; exec "$@"', ECHO, {"file home/left"}),
    ("a niceness", 'exec nice -n 3 "$@"', FACTS, {"niceness"}),
    ("an environment variable", 'export LEFT=1; exec "$@"', FACTS, {"env LEFT"}),
    ("a limit", 'ulimit -S -n 200; exec "$@"', FACTS, {"limit nofile soft"}),
    ("an ignored signal", 'trap "" USR1; exec "$@"', FACTS, {"status SigIgn"}),
    ("a descriptor", 'exec 8</dev/null; exec "$@"', FACTS, {"fd 8"}),
    ("a umask", 'umask 077; exec "$@"', FACTS, {"status Umask"}),
    ("a known difference", 'exec nice -n 10 "$@"', Entry("facts", ("facts",), facts=True, known=(NICE,)), set()),
    (
        "a known difference with another value",
        'exec nice -n 11 "$@"',
        Entry("facts", ("facts",), facts=True, known=(NICE,)),
        {"niceness"},
    ),
    (
        "a known difference that is gone",
        'exec "$@"',
        Entry("facts", ("facts",), facts=True, known=(NICE,)),
        {"niceness"},
    ),
    (
        "a signal that is not passed on",
        """trap "" HUP; trap 'kill -USR2 $!' USR2; "$@" & while ! wait $!; do :; done""",
        Entry("signals", ("signals", "catch"), sends=(Send(("HUP", "USR2")),)),
        {"stdout"},
    ),
    (
        "a process that stays",
        'sleep 300 </dev/null >/dev/null 2>&1 & exec "$@"',
        Entry("echo", ECHO.command, patience=0.2),
        {"leftover processes"},
    ),
    (
        "a process that holds the output",
        'sleep 300 & exec "$@"',
        Entry("echo", ECHO.command, patience=0.2),
        {"leftover processes", "output held open"},
    ),
)

#: These need namespaces of their own, which only root gets, so that they leave nothing on the machine.
FAULTS_OF_ROOT: Tuple[Tuple[str, str, Entry, Set[str]], ...] = (
    ("a file in /tmp", 'touch /tmp/left; exec "$@"', ECHO, {"leftover files in /tmp"}),
    ("a file in /dev/shm", 'touch /dev/shm/left; exec "$@"', ECHO, {"leftover files in /dev/shm"}),
    ("shared memory", 'ipcmk --shmem 1000 >/dev/null; exec "$@"', ECHO, {"leftover System V IPC"}),
    (
        "a socket",
        "python3 -c \"import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(); time.sleep(300)\" "
        '</dev/null 2>/dev/null > >(read -r; touch listens) & until [ -e listens ]; do sleep 0.01; done; rm listens\n'
        'exec "$@"',
        Entry("echo", ECHO.command, patience=0.2),
        {"leftover sockets", "leftover processes"},
    ),
)


class Faults(unittest.TestCase):
    base: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.base = Path(tempfile.mkdtemp(prefix="innocent-"))
        cls.base.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, cls.base)
        (cls.base / "bin").mkdir()
        missing = needs.compile_programs(cls.base / "bin")
        if "facts" in missing or "signals" in missing:
            raise unittest.SkipTest("there is no C compiler")

    def check(self, fault: str, script: str, entry: Entry, expected: Set[str]) -> None:
        stand_in = self.base / "bin/antifreeze"
        stand_in.write_text(PRELUDE + script + "\n")
        stand_in.chmod(0o755)
        path = f"{self.base / 'bin'}:{os.environ['PATH']}"
        trouble = "\n".join(examine(entry, Folders(self.base / "entry"), path))
        self.assertEqual(set(re.findall(r"^    (\S.*)$", trouble, re.MULTILINE)), expected, f"{fault}:\n{trouble}")

    def test_each_fault_is_named(self) -> None:
        for fault, script, entry, expected in FAULTS:
            with self.subTest(fault):
                self.check(fault, script, entry, expected)

    def test_a_suite_that_runs_under_nohup_finds_no_fault(self) -> None:
        entry = Entry("signals", ("signals", "default"), sends=(Send(("HUP",)),), loud=False, timeout=20)
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            self.check("an ignored signal", 'exec "$@"', entry, set())
        finally:
            signal.signal(signal.SIGHUP, before)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    @unittest.skipIf(shutil.which("ipcmk") is None, "there is no ipcmk")
    def test_each_leftover_outside_the_folders_is_named(self) -> None:
        for fault, script, entry, expected in FAULTS_OF_ROOT:
            with self.subTest(fault):
                if set(PRIVATE_FOLDERS) != set(private_folders(entry, os.environ["PATH"], self.base)):
                    self.skipTest("programs are in one of the folders")
                self.check(fault, script, entry, expected)


if __name__ == "__main__":
    unittest.main()
