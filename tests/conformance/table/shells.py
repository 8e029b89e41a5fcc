"""Shells, exit statuses, and ways in which a program ends."""

from __future__ import annotations

import dataclasses

from ..entry import Entry, KnownDifference
from .initial_state import AS_USER, ORDINARY_USER
from .outcome import message

NAMED = "antifreeze names the command that could not be run, as a shell does"
GUARD_STAYS = "the guard stays with what the command has started"

STEPS_ASIDE = message("runs without a guard", "the limit leaves the guard no room, and antifreeze says so")


def limited(limit: str, **changes: object) -> Entry:
    """A pipeline below a limit of the user's."""
    return Entry(
        f"a pipeline below ulimit {limit}",
        ("sh", "-c", "ulimit -n; ulimit -f; seq 3 | cat"),
        around=("bash", "-c", f'ulimit {limit}; exec "$@"', "bash"),
        **changes,  # type: ignore[arg-type]
    )


def of_user(entry: Entry) -> Entry:
    """The same, started by an ordinary user, who cannot raise a limit."""
    return dataclasses.replace(
        entry,
        name=f"{entry.name} as an ordinary user",
        around=(*AS_USER, *entry.around),
        owner=ORDINARY_USER,
        needs=("setpriv", "root"),
        known=(STEPS_ASIDE,),
    )


STATUSES = [
    Entry(f"{shell} that ends with {status}", (shell, "-c", f"exit {status}"), needs=(shell,))
    for shell, status in (("sh", 0), ("bash", 1), ("dash", 75), ("sh", 125), ("bash", 126), ("sh", 255))
]

ENTRIES = [
    *STATUSES,
    Entry("dash that ends with 127", ("dash", "-c", "exit 127"), needs=("dash",)),
    Entry("true", ("true",)),
    Entry("false", ("false",)),
    Entry(
        "a command that is not there",
        ("no-such-program-anywhere",),
        known=(message("not found", NAMED),),
    ),
    Entry(
        "a file that cannot be executed",
        ("/etc/passwd",),
        known=(message("cannot be run", NAMED),),
    ),
    Entry(
        "a folder as the command",
        ("/etc",),
        known=(message("cannot be run", NAMED),),
    ),
    Entry("a script without an interpreter line", ("sh", "-c", "echo 'echo hello $0' > s; chmod +x s; exec ./s")),
    Entry(
        "a shell whose command is not there",
        ("sh", "-c", "no-such-program-anywhere"),
    ),
    Entry(
        "a shell pipeline",
        ("bash", "-o", "pipefail", "-c", "seq 1000 | grep 7 | sort -r | head -3; echo ${PIPESTATUS[*]}"),
    ),
    Entry("a subshell killed by a signal", ("bash", "-c", "(kill -SEGV $BASHPID); echo $?"), masks=(r"line 1: +\d+",)),
    Entry("background jobs and wait", ("bash", "-c", "for n in 1 2 3; do (exit $n) & done; wait %2; echo $?; wait")),
    Entry("traps", ("bash", "-c", "trap 'echo at the end' EXIT; trap 'echo got USR1' USR1; kill -USR1 $$; exit 3")),
    Entry("the signal that ends a shell", ("sh", "-c", "kill -TERM $$")),
    Entry(
        "exec chains",
        ("env", "A=1", "nice", "-n", "0", "sh", "-c", 'exec sh -c "exec env B=2 sh -c \'echo \\$A \\$B\'"'),
    ),
    Entry("xargs", ("xargs", "-P", "4", "-n", "1", "sh", "-c", 'exit "$0"'), stdin=b"0 1 0\n"),
    Entry("find and exec", ("find", "/etc/passwd", "-exec", "wc", "-c", "{}", "+")),
    Entry("timeout that ends its command", ("timeout", "0.2", "sleep", "20")),
    Entry("a shell that ignores SIGTERM", ("sh", "-c", "trap '' TERM; kill -TERM $$; echo still here")),
    Entry("a shell with limits of its own", ("bash", "-c", "ulimit -n 99; ulimit -s 2048; ulimit -n -s -c; exec true")),
    Entry(
        "ulimit -f and its signal",
        ("bash", "-c", "ulimit -f 1; head -c 100000 /dev/zero > big; echo $?"),
        masks=(r"line 1: +\d+",),
    ),
    Entry(
        "a program in another root folder",
        (
            "bash",
            "-c",
            "for file in /bin/echo $(env -u LD_PRELOAD ldd /bin/echo | grep -o '/[^ ]*'); do install -D $file root$file; done;"
            " chroot root /bin/echo inside",
        ),
        needs=("root", "chroot"),
    ),
    limited("-S -n 24"),
    limited("-S -f 1"),
    *(of_user(limited(limit)) for limit in ("-n 24", "-f 1", "-u 20")),
    *(limited(limit) for limit in ("-S -s 64", "-l 0", "-v 4000000", "-q 0", "-i 0")),
    Entry(
        "a program that uses up ulimit -t",
        ("sh", "-c", "while :; do :; done"),
        around=("bash", "-c", 'ulimit -S -t 1; exec "$@"', "bash"),
        timeout=300,
        heavy=True,
    ),
    Entry(
        "a fork bomb of 200 short processes",
        ("bash", "-c", "for n in {1..200}; do (exit 0) & done; wait; echo done"),
    ),
    Entry(
        "a daemon that ends soon",
        ("sh", "-c", "setsid sleep 1 </dev/null >/dev/null 2>&1 & echo started"),
        needs=("setsid",),
    ),
    Entry(
        "a daemon that stays",
        ("sh", "-c", "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo started"),
        needs=("setsid",),
        leaves=("sleep",),
        known=(
            KnownDifference("leftover processes", "af-anchor, af-anchor, af-keeper, af-keeper-2, antifreeze-guar, sleep", GUARD_STAYS),
            KnownDifference("leftover *", r"none|\S*/antifreeze-.*|unix.*", GUARD_STAYS),
        ),
        loud=False,
        patience=1,
    ),
    Entry(
        "a shell on a terminal",
        ("bash", "--norc", "-c", "tty; stty size; test -t 0 -a -t 1 -a -t 2; echo $?"),
        terminal=True,
    ),
    Entry(
        "an interactive shell",
        ("bash", "--norc", "--noediting", "-i", "-c", "set -o | grep monitor; echo $-"),
        terminal=True,
    ),
]
