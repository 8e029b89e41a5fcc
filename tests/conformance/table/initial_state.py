"""The initial state of a process, in every situation that a user may start antifreeze from."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Tuple

from ..entry import Entry, KnownDifference

#: What antifreeze documents that it gives to a command.
SHIM = (
    KnownDifference("env PYTHONPATH", ".+/shim[^:]*(:/nowhere)?", "the shim is found through it (docs/shim.md)"),
    KnownDifference("env ANTIFREEZE_RUN", "/.+", "the shim writes its report there (docs/shim.md)"),
    KnownDifference("env ANTIFREEZE_SAVES", "/.+", "emergency checkpoints are written there (docs/shim.md)"),
)
PAGE = (
    KnownDifference(
        "env ANTIFREEZE_PAGE",
        r"/proc/\d+/fd/\d+:/proc/\d+/fd/\d+",
        "the cushion and the shim find the shared page through it (docs/architecture.md)",
    ),
)
CUSHION = (
    KnownDifference("env LD_PRELOAD", r"/[^:]*cushion[^:]*\.so(:libc\.so\.6)?", "the cushion (docs/architecture.md)"),
)
WALL = (KnownDifference("limit data soft", r"\d+", "the wall (docs/architecture.md)"),)
OOM_SCORE = (
    KnownDifference(
        "oom score adjustment",
        str(min(1000, int(Path("/proc/self/oom_score_adj").read_text()) + 500)),
        "the kernel's OOM killer prefers the trainer (crates/guard)",
    ),
)


def niceness(added: int) -> KnownDifference:
    """The niceness of the suite itself, and what is added to it."""
    return KnownDifference("niceness", str(min(19, os.nice(0) + added)), "the default of --nice is 10 (docs/guide.md)")


OURS_WITHOUT_NICENESS = (*SHIM, *PAGE, *CUSHION, *WALL, *OOM_SCORE)
OURS = (*OURS_WITHOUT_NICENESS, niceness(10))

PIPE = "antifreeze passes the output on, so a file is a pipe for the command"
RELAYED_TERMINAL = "without the cushion, the program sees the pty of antifreeze's, which has no OPOST"

ORDINARY_USER = 65534
AS_USER = ("setpriv", f"--reuid={ORDINARY_USER}", f"--regid={ORDINARY_USER}", "--clear-groups")


def shell(script: str) -> Tuple[str, ...]:
    """A shell that changes something of its own and then becomes the command."""
    return ("sh", "-c", script + ' exec "$@"', "sh")


PLAIN = Entry("initial state", ("facts", "one", "", "th ree"), needs=("facts",), facts=True, known=OURS)


def without(*groups: Tuple[KnownDifference, ...]) -> Tuple[KnownDifference, ...]:
    """The usual differences without some."""
    return tuple(one for one in OURS if not any(one in group for group in groups))


def state(name: str, **changes: object) -> Entry:
    """The same facts in another situation."""
    return dataclasses.replace(PLAIN, name=f"initial state {name}", **changes)  # type: ignore[arg-type]


ENTRIES = [
    PLAIN,
    state("in a static program", command=("facts-static",), needs=("facts-static",)),
    state("with another umask", around=shell("umask 027;")),
    state("with limits of the user", around=shell("ulimit -n 256; ulimit -s 4096; ulimit -c 0; ulimit -l 64;")),
    # The wall is not higher than a limit of the user's.
    state("with a data limit of the user", around=shell("ulimit -S -d 4000000;"), known=without(WALL)),
    state(
        "with a niceness of the user",
        around=("nice", "-n", "5"),
        needs=("facts", "nice"),
        known=(*OURS_WITHOUT_NICENESS, niceness(15)),
    ),
    state("with ignored signals", around=("env", "--ignore-signal=USR1,TERM,HUP,CHLD"), needs=("facts", "env")),
    state("with blocked signals", around=("env", "--block-signal=USR2,TERM,ALRM"), needs=("facts", "env")),
    state("with SIGPIPE ignored", around=("env", "--ignore-signal=PIPE"), needs=("facts", "env")),
    state("under nohup", around=("nohup",), needs=("facts", "nohup")),
    state("in a session of its own", around=("setsid", "--wait"), needs=("facts", "setsid")),
    state("on one core", around=("taskset", "--cpu-list", "0"), needs=("facts", "taskset")),
    state("as a batch job", around=("chrt", "--batch", "0"), needs=("facts", "chrt")),
    state("with idle disk priority", around=("ionice", "-c", "3"), needs=("facts", "ionice")),
    state("with descriptors of the caller", around=shell("exec 7</dev/null 9>>appended;")),
    state("without standard input", around=shell("exec <&-;")),
    state("without standard error", around=shell("exec 2>&-;")),
    state("with one pipe for both outputs", around=shell("exec 2>&1;"), one_output=True),
    state(
        "with a file as standard error",
        around=shell("exec 2>>errors;"),
        known=(
            *OURS,
            KnownDifference("fd 2", r"pipe:\[N\] write", PIPE),
            KnownDifference("file work/errors", ".*antifreeze: .*", "antifreeze's lines are in it", only_loud=True),
        ),
    ),
    state("in a folder that is gone", around=shell("mkdir gone; cd gone; rmdir ../gone;")),
    state(
        "with few variables",
        around=("sh", "-c", 'exec env -i PATH="$PATH" "$@"', "sh"),
    ),
    state("with variables of the same names", env={"PYTHONPATH": "/nowhere", "LD_PRELOAD": "libc.so.6"}),
    state("on a terminal", terminal=True),
    state(
        "on a terminal in a static program",
        command=("facts-static",),
        needs=("facts-static",),
        terminal=True,
        known=(*OURS, KnownDifference("modes of terminal [12]", "[0-9a-f]+ 4 [0-9a-f]+ [0-9a-f]+", RELAYED_TERMINAL)),
    ),
    state("as an ordinary user", around=AS_USER, owner=ORDINARY_USER, needs=("facts", "setpriv", "root")),
    state(
        "setuid for an ordinary user",
        command=("facts-setuid",),
        around=AS_USER,
        owner=ORDINARY_USER,
        needs=("facts-setuid", "setpriv", "root"),
        # The loader takes LD_PRELOAD out of the environment of a setuid program.
        known=without(CUSHION),
    ),
    Entry(
        "an empty environment",
        ("/usr/bin/env",),
        around=("sh", "-c", 'program=$(command -v "$1"); shift; exec env -i "$program" "$@"', "sh"),
        needs=("/usr/bin/env",),
        known=(
            KnownDifference(
                "stdout",
                r"((ANTIFREEZE_(RUN|SAVES|PAGE)|PYTHONPATH|LD_PRELOAD)=[^\n]+\n?){5}",
                "the shim, the cushion and the shared page (docs/architecture.md)",
            ),
        ),
    ),
    Entry("ls of its own descriptors", ("ls", "-l", "--time-style=+", "/proc/self/fd"), masks=(r"/proc/\d+/",)),
]
