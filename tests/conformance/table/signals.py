"""Signals that are sent to the process that was started, which is antifreeze where there is one."""

from __future__ import annotations

import signal
from typing import Tuple

from ..entry import Entry, KnownDifference, Send
from .interpreter import PYTHON
from .outcome import died

#: Signals that are passed on to the command.
PASSED_ON = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 ALRM TERM STKFLT URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS "
    "RTMIN+3"
).split()
#: Signals of PASSED_ON whose default action ends a program, and that people send.
ENDING = "HUP INT QUIT USR1 USR2 ALRM TERM XCPU RTMIN+3".split()
#: Signals that antifreeze needs for itself.
NOT_PASSED_ON = "PIPE CHLD CONT".split()
#: Signals that stop antifreeze instead of the command.
STOPPING = "TSTP TTIN TTOU".split()

LOST = "the kernel sends this signal to antifreeze for reasons of its own, so it is not passed on"
STOPS_THE_FRONT = "job control sends this signal to the whole process group, so it is not passed on"
FRONT_KILLED = "when antifreeze is killed, the command continues under its guard (docs/architecture.md)"

CATCH, HANDLE, DEFAULT, IGNORE, READ = (("signals", mode) for mode in ("catch", "handle", "default", "ignore", "read"))


def sent(
    name: str, command: Tuple[str, ...], *sends: Send, known: Tuple[KnownDifference, ...] = (), **more: object
) -> Entry:
    """A program that waits, and what is sent to it."""
    needs = ("signals",) if command[0] == "signals" else (command[0],)
    return Entry(name, command, needs=needs, sends=sends, known=known, **more)  # type: ignore[arg-type]


def echoed(key: str) -> KnownDifference:
    return KnownDifference(
        "stdout",
        rf"ready\r\n{key}antifreeze: .*",
        f"the terminal echoes {key[1:]} without a line break, so antifreeze's line follows on the same line",
        only_loud=True,
    )


ENTRIES = [
    *(sent(f"SIG{name} that is caught", CATCH, Send((name,)), loud=False) for name in PASSED_ON),
    *(
        sent(
            f"SIG{name} that is caught",
            CATCH,
            Send((name, "RTMIN+3")),
            known=(KnownDifference("stdout", f"ready\ngot signal {signal.SIGRTMIN + 3}\n", LOST),),
            loud=False,
        )
        for name in NOT_PASSED_ON
    ),
    *(
        sent(
            f"SIG{name} that is caught",
            CATCH,
            Send((name,)),
            known=(
                KnownDifference("stopped by", f"SIG{name}", STOPS_THE_FRONT),
                KnownDifference("stdout", f"ready\ngot signal {int(signal.SIGCONT)}\n", STOPS_THE_FRONT),
            ),
            loud=False,
        )
        for name in STOPPING
    ),
    sent(
        "signals with handlers",
        HANDLE,
        Send(("USR1",)),
        Send(("TERM",)),
        Send(("INT",)),
        Send(("HUP",)),
        Send(("USR2",)),
    ),
    *(
        sent(f"SIG{name} that is ignored", IGNORE, Send((name, "RTMIN+3")), loud=False)
        for name in "HUP INT QUIT USR1 ALRM TERM".split()
    ),
    *(sent(f"SIG{name} that ends a program", DEFAULT, Send((name,)), known=(died(name),)) for name in ENDING),
    sent("SIGABRT that ends a program", DEFAULT, Send(("ABRT",)), known=(died("ABRT"),)),
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
    sent("SIGTERM to the process group", DEFAULT, Send(("TERM",), to_group=True), known=(died("TERM"),)),
    sent(
        "SIGTERM to a shell and its children",
        # The last process of the tree says "ready": bash blocks SIGTERM while it forks, so a signal that comes
        # then does not reach the new child.
        ("bash", "-c", "sleep 300 & (bash -c 'echo ready; exec sleep 300'; echo never) & wait"),
        Send(("TERM",), to_group=True),
        known=(died("TERM"),),
    ),
    sent("Ctrl-C on a terminal, caught", CATCH, Send(typed=b"\x03"), terminal=True),
    sent("Ctrl-C on a terminal", DEFAULT, Send(typed=b"\x03"), terminal=True, known=(died("INT"), echoed(r"\^C"))),
    sent("Ctrl-\\ on a terminal", DEFAULT, Send(typed=b"\x1c"), terminal=True, known=(died("QUIT"), echoed(r"\^\\"))),
    sent(
        "Ctrl-Z on a terminal, and fg",
        DEFAULT,
        Send(typed=b"\x1a"),
        Send(("TERM",)),
        terminal=True,
        known=(died("TERM"), echoed(r"\^Z")),
    ),
    sent("end of input on a terminal", READ, Send(typed=b"\x04"), terminal=True),
    sent(
        "a KeyboardInterrupt in Python",
        (PYTHON, "-c", "import time; print('ready', flush=True); time.sleep(300)"),
        Send(("INT",)),
        known=(died("INT"),),
    ),
    Entry("an alarm", ("perl", "-e", "alarm 1; sleep 20"), needs=("perl",), known=(died("ALRM"),)),
    Entry("a crash", ("sh", "-c", "kill -SEGV $$"), known=(died("SEGV"),)),
    Entry("an abort", ("sh", "-c", "kill -ABRT $$"), known=(died("ABRT"),)),
    Entry("a kill from inside", ("sh", "-c", "kill -KILL $$"), known=(died("KILL"),)),
]
