"""Signals that are sent to the process that was started, which is antifreeze where there is one."""

from __future__ import annotations

from typing import Tuple

from ..entry import Entry, KnownDifference, Send
from .interpreter import PYTHON

#: Every signal that a program can catch; 32 and 33 are those that the C library keeps for itself.
CATCHABLE = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ "
    "VTALRM PROF WINCH IO PWR SYS RTMIN RTMIN+3 RTMAX"
).split()
#: Signals whose default action ends a program.
ENDING = "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM STKFLT XCPU XFSZ VTALRM PROF IO PWR SYS".split()
#: Signals of ENDING that people send.
SENT_LOUD = "HUP INT QUIT USR1 TERM".split()
STOPPING = "TSTP TTIN TTOU STOP".split()

FRONT_KILLED = "when antifreeze is killed, the command continues under its guard (docs/architecture.md)"

CATCH, HANDLE, DEFAULT, IGNORE, READ = (("signals", mode) for mode in ("catch", "handle", "default", "ignore", "read"))


def sent(
    name: str, command: Tuple[str, ...], *sends: Send, known: Tuple[KnownDifference, ...] = (), **more: object
) -> Entry:
    """A program that waits, and what is sent to it."""
    needs = ("signals",) if command[0] == "signals" else (command[0],)
    return Entry(name, command, needs=needs, sends=sends, known=known, **more)  # type: ignore[arg-type]


#: Ends the program that handles signals.
END = Send(("USR2",))


def echoed(key: str) -> KnownDifference:
    return KnownDifference(
        "stdout",
        rf"ready\r\n{key}antifreeze: .*",
        f"the terminal echoes {key[1:]} without a line break, so antifreeze's line follows on the same line",
        only_loud=True,
    )


ENTRIES = [
    *(sent(f"SIG{name} that is caught", CATCH, Send((name,)), loud=False) for name in CATCHABLE),
    *(
        sent(f"SIG{name} to the process group, caught once", HANDLE, Send((name,), to_group=True), END, loud=False)
        for name in "HUP INT QUIT USR1 PIPE ALRM TERM CONT TSTP WINCH IO RTMIN+3".split()
    ),
    *(
        sent(f"SIG{name} that stops {what}", DEFAULT, Send((name,), to_group=to_group), Send(("TERM",)), loud=False)
        for name in STOPPING
        for to_group, what in ((False, "a program"), (True, "a process group"))
    ),
    sent(
        "signals with handlers",
        HANDLE,
        Send(("USR1",)),
        Send(("TERM",)),
        Send(("INT",)),
        Send(("HUP",)),
        END,
    ),
    *(
        sent(f"SIG{name} that is ignored", IGNORE, Send((name, "RTMIN+3")), loud=False)
        for name in CATCHABLE
        if name not in ("RTMIN+3", "RTMIN", "RTMAX")
    ),
    *(
        sent(f"SIG{name} that ends a program", DEFAULT, Send((name,)), loud=name in SENT_LOUD)
        for name in [*ENDING, "RTMIN", "RTMAX"]
    ),
    sent(
        "SIGKILL that ends a program",
        DEFAULT,
        Send(("KILL",)),
        known=(
            KnownDifference("output held open", "stdout, stderr", FRONT_KILLED),
            KnownDifference("leftover processes", ".*signals.*", FRONT_KILLED),
            KnownDifference("leftover *", ".*", FRONT_KILLED),
        ),
        loud=False,
        patience=0.5,
    ),
    sent("SIGTERM to the process group, caught", CATCH, Send(("TERM",), to_group=True)),
    sent("SIGTERM to the process group", DEFAULT, Send(("TERM",), to_group=True)),
    sent(
        "SIGTERM to a shell and its children",
        # The last process of the tree says "ready": bash blocks SIGTERM while it forks, so a signal that comes
        # then does not reach the new child.
        ("bash", "-c", "sleep 300 & (bash -c 'echo ready; exec sleep 300'; echo never) & wait"),
        Send(("TERM",), to_group=True),
    ),
    sent("Ctrl-C on a terminal, caught", CATCH, Send(typed=b"\x03"), terminal=True),
    sent("Ctrl-C on a terminal", DEFAULT, Send(typed=b"\x03"), terminal=True, known=(echoed(r"\^C"),)),
    sent("Ctrl-\\ on a terminal", DEFAULT, Send(typed=b"\x1c"), terminal=True, known=(echoed(r"\^\\"),)),
    sent(
        "Ctrl-Z on a terminal, and fg",
        DEFAULT,
        Send(typed=b"\x1a"),
        Send(("TERM",)),
        terminal=True,
        known=(echoed(r"\^Z"),),
    ),
    sent("end of input on a terminal", READ, Send(typed=b"\x04"), terminal=True),
    sent(
        "a KeyboardInterrupt in Python",
        (PYTHON, "-c", "import time; print('ready', flush=True); time.sleep(300)"),
        Send(("INT",)),
    ),
    Entry("an alarm", ("perl", "-e", "alarm 1; sleep 20"), needs=("perl",)),
    Entry(
        "an alarm of the caller",
        DEFAULT,
        around=("perl", "-e", "alarm 2; exec @ARGV"),
        needs=("perl", "signals"),
        masks=("ready\n",),
    ),
    Entry(
        "an interval timer of the caller",
        CATCH,
        around=(
            PYTHON,
            "-c",
            "import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 2, 1); os.execvp(sys.argv[1], sys.argv[1:])",
        ),
        needs=("signals",),
    ),
    Entry("a crash", ("sh", "-c", "kill -SEGV $$")),
    Entry("an abort", ("sh", "-c", "kill -ABRT $$")),
    Entry("a kill from inside", ("sh", "-c", "kill -KILL $$")),
]
