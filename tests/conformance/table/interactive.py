"""Programs that people talk to: every key, mode, size and stop of the terminal."""

from __future__ import annotations

from typing import Tuple

from ..entry import Entry, Send
from .initial_state import AS_USER, ORDINARY_USER
from .interpreter import PYTHON

#: Control characters, as they are typed.
CTRL_C, CTRL_D, CTRL_Z = b"\x03", b"\x04", b"\x1a"


def talk(name: str, *command: str, sends: Tuple[Send, ...], **more: object) -> Entry:
    needs = more.pop("needs", (command[0],))
    more.setdefault("timeout", 40)
    more.setdefault("env", {"PS1": "$ ", "HISTFILE": "", "PAGER": "less", "LESS": ""})
    return Entry(name, command, needs=needs, terminal=True, sends=sends, loud=False, **more)  # type: ignore[arg-type]


ROOT = ("root", "setpriv", "unshare")
#: What shells without an editor of their own prompt with. That of busybox asks where the cursor is.
PROMPT = rb"\$ (\x1b\[6n)?$"


def job_control(name: str, *command: str, prompt: bytes = PROMPT, **more: object) -> Entry:
    """A shell that starts a job, stops it, continues it, and interrupts it."""
    return talk(
        name,
        *command,
        brings=("job.sh",),
        sends=(
            Send(typed=b"bash job.sh\n", after=prompt),
            Send(typed=CTRL_Z, after=rb"running"),
            Send(typed=b"jobs\n", after=prompt),
            Send(typed=b"fg\n", after=prompt),
            Send(typed=CTRL_C, after=rb"resumed"),
            Send(typed=b"exit 5\n", after=prompt),
        ),
        **more,
    )


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
    job_control("job control in bash", "bash", "--norc", "--noediting", "-i"),
    job_control("job control in dash", "dash", "-i"),
    job_control("job control in a static busybox", "busybox", "sh", "-i"),
    # It writes its prompt to the terminal itself, and what commands print to standard output.
    job_control("job control in zsh", "zsh", "-f", prompt=rb"\$ \x1b\[K\x1b\[\?2004h$", masks=(r"\[\d\]  [+-] \d+",)),
    # Without the cushion, which is in a folder that others may not read.
    job_control("job control of another user", *AS_USER, "bash", "--norc", "--noediting", "-i", needs=ROOT,
                owner=ORDINARY_USER),
    # Without the page, which is not in this /proc.
    job_control(
        "job control in a PID namespace",
        *("unshare", "--mount", "--pid", "--fork", "--mount-proc", "bash", "--norc", "--noediting", "-i"),
        needs=ROOT,
    ),
    job_control(
        "job control without variables",
        *("env", "-i", "PATH=/usr/bin:/bin", "PS1=$ ", "bash", "--norc", "--noediting", "-i"),
    ),
    talk("less of another user", *AS_USER, "less", "/etc/services", needs=("less", *ROOT),
         sends=(Send(typed=b" ", after=rb"services"), Send(typed=b"q", after=rb":"))),
    talk(
        "a question on the terminal itself",
        PYTHON,
        "-c",
        "import getpass\nfor n in range(50): print('printed before', n)\nprint(len(getpass.getpass('word: ')))",
        sends=(Send(typed=b"secret\n", after=rb"word: "),),
    ),
    talk(
        "dialog",
        *("sh", "-c", "dialog --stdout --menu choose 15 40 5 a A b B c C; echo $?"),
        sends=(Send(typed=b"\x1b[B", after=rb"Cancel"), Send(typed=b"\r", after=rb"B")),
    ),
    talk(
        "expect",
        *("expect", "-c", "spawn -noecho sh -c {read line; echo got $line}; send one\\r; expect got; exit 3"),
        sends=(),
    ),
    # Ctrl-C may make it draw once more, alone as well.
    talk(
        "watch",
        *("watch", "-t", "-n", "100", "echo", "watched"),
        sends=(Send(typed=CTRL_C, after=rb"watched"),),
        masks=(r"(watched\x1b\[30;90H)+",),
    ),
    talk(
        "perl in its debugger",
        *("perl", "-d", "-e", "$x = 6 * 7; print $x;"),
        sends=(Send(typed=b"n\n", after=rb"DB<1>"), Send(typed=b"p $x\n", after=rb"DB<1>"), Send(typed=b"q\n", after=rb"42(.|\s)*DB<")),
        env={"PERL_RL": "Stub", "TERM": "dumb"},
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
