"""Programs that people talk to: every key, mode, size and stop of the terminal."""

from __future__ import annotations

from typing import Tuple

from ..entry import Entry, Send
from .interpreter import PYTHON

#: Control characters, as they are typed.
CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"


def talk(name: str, *command: str, sends: Tuple[Send, ...], **more: object) -> Entry:
    needs = (command[0],)
    more.setdefault("timeout", 40)
    more.setdefault("env", {"PS1": "$ ", "HISTFILE": "", "PAGER": "less", "LESS": ""})
    return Entry(name, command, needs=needs, terminal=True, sends=sends, loud=False, **more)  # type: ignore[arg-type]


ENTRIES = [
    talk("less", "less", "/etc/services", sends=(Send(typed=b" ", after=rb"services"), Send(typed=b"q", after=rb":"))),
    talk("git and its pager", "git", "-p", "help", "-g", sends=(Send(typed=b"q", after=rb"\(END\)|\n:"),)),
    talk("help() in Python", PYTHON, "-c", "help(len)", sends=(Send(typed=b"q", after=rb"\(END\)"),)),
    talk(
        "a debugger in a script",
        PYTHON,
        "debugged.py",
        brings=("debugged.py",),
        sends=(Send(typed=b"p y\n", after=rb"\(Pdb\) "), Send(typed=b"c\n", after=rb"42\r\n\(Pdb\) ")),
    ),
    talk(
        "a program that draws",
        PYTHON,
        "keys.py",
        brings=("keys.py",),
        sends=(
            Send(typed=b"x", after=rb"press a key"),
            Send(typed=b"\x1bOA", after=rb"120"),
            Send(resize=(20, 70), after=rb"259"),
            Send(typed=b"q", after=rb"size 20 70"),
        ),
    ),
    talk(
        "a window whose size changes",
        PYTHON,
        "sizes.py",
        brings=("sizes.py",),
        sends=(Send(resize=(20, 70)), Send(resize=(50, 120)), Send(("TERM",))),
    ),
    talk(
        "a program that puts the screen back before it stops",
        PYTHON,
        "suspends.py",
        brings=("suspends.py",),
        sends=(Send(typed=CTRL_Z),),
    ),
    talk(
        "job control inside of a shell",
        "bash",
        "--norc",
        "--noediting",
        "-i",
        brings=("job.sh",),
        sends=(
            Send(typed=b"bash job.sh\n", after=rb"\$ $"),
            Send(typed=CTRL_Z, after=rb"running"),
            Send(typed=b"jobs; fg\n", after=rb"Stopped.*\n\$ $"),
            Send(typed=CTRL_C, after=rb"resumed"),
            Send(typed=b"exit 5\n", after=rb"\n\$ $"),
        ),
    ),
    talk(
        "a Python prompt",
        PYTHON,
        "-q",
        sends=(
            Send(typed=b"1 + 1\n", after=rb">>> "),
            Send(typed=b"import time; print('go' 'ne'); time.sleep(100)\n", after=rb"2\r\n.*>>> "),
            Send(typed=CTRL_C, after=rb"\r\ngone"),
            Send(typed=CTRL_D, after=rb"KeyboardInterrupt\r\n.*>>> "),
        ),
        env={"PYTHON_BASIC_REPL": "1"},
    ),
]
