"""Input and output: every byte, in order, to every kind of place."""

from __future__ import annotations

from ..entry import Entry, KnownDifference, Send
from .initial_state import shell
from .outcome import message

IN_THE_FILE = KnownDifference("file work/log", ".*antifreeze: .*", "antifreeze's lines are in it", only_loud=True)
FULL_DISK = (
    KnownDifference("status", "exit status 74", "the command succeeds in writing to a pipe, so antifreeze's status tells"),
    KnownDifference("stderr", "", "the command does not notice that the output was lost"),
    message("output", "antifreeze tells that the output was lost"),
)
READ_BY_HEAD = ("bash", "-c", '"$@" | head -2; echo ${PIPESTATUS[*]}', "bash")
TWO_STREAMS = ("sh", "-c", "echo 1; echo 2 >&2; echo 3; echo 4 >&2")

ENTRIES = [
    Entry("cat of standard input", ("cat",), stdin=b"one\ntwo\n"),
    Entry("binary input and output", ("cat",), stdin=bytes(range(256)) * 300),
    Entry("input that is not read", ("true",), stdin=b"x" * 1000),
    Entry("a line without an end", ("printf", "no end")),
    Entry("standard error without an end", ("sh", "-c", "printf out; printf err >&2")),
    Entry("no output at all", ("sh", "-c", "exit 0")),
    Entry("100 MB through a pipe", ("head", "-c", "100000000", "/dev/zero"), loud=False),
    Entry("20 MB of numbers", ("seq", "2500000"), loud=False),
    Entry("100 MB into a file", ("head", "-c", "100000000", "/dev/zero"), around=shell("exec > zeros;"), loud=False),
    Entry("a file that is appended to", ("echo", "more"), around=shell("echo first > log; exec >> log;")),
    Entry("both outputs to one file", TWO_STREAMS, around=shell("exec > log 2>&1;"), known=(IN_THE_FILE,)),
    Entry("both outputs through one pipe", TWO_STREAMS, around=shell("exec 2>&1;"), one_output=True),
    Entry("output to /dev/null", ("seq", "100"), around=shell("exec > /dev/null;")),
    Entry("standard output that is closed", ("cat", "/etc/passwd"), around=shell("exec >&-;")),
    Entry("standard error that is closed", ("cat", "/no/such/file"), around=shell("exec 2>&-;")),
    Entry("all three closed", ("sh", "-c", "echo lost; exit 4"), around=shell("exec <&- >&- 2>&-;")),
    Entry("a reader that goes away", ("bash", "-c", "yes | head -2; echo ${PIPESTATUS[*]}")),
    Entry("a reader of the run that goes away", ("yes",), around=READ_BY_HEAD),
    Entry("a reader of the run that goes away before its end", ("seq", "1000000"), around=READ_BY_HEAD),
    Entry("a reader that tail sees go away", ("tail", "-f", "/etc/passwd"), around=READ_BY_HEAD),
    Entry(
        "a daemon in a command substitution",
        ("sh", "-c", "setsid sleep 60 </dev/null >/dev/null 2>&1 & echo $!"),
        around=("bash", "-c", 'pid=$("$@"); kill $pid && echo it is still there', "bash"),
    ),
    Entry(
        "standard output that the command closes",
        ("sh", "-c", "echo one; exec >&-; sleep 1; test -e seen && echo it was seen at once >&2"),
        around=("bash", "-c", '"$@" | { cat; : > seen; }', "bash"),
    ),
    Entry(
        "a pipe of the caller's that the command closes",
        ("sh", "-c", "echo one >&9; exec 9>&-; sleep 1; test -e seen && echo it was seen at once"),
        around=("bash", "-c", 'exec 8>&1; "$@" 9>&1 >&8 8>&- | { cat; : > seen; }', "bash"),
    ),
    Entry("a full disk", ("seq", "100000"), around=shell("exec > /dev/full;"), known=FULL_DISK),
    Entry("a full disk for one echo", ("sh", "-c", "echo lost"), around=shell("exec > /dev/full;"), known=FULL_DISK),
    Entry("colours and carriage returns", ("printf", "\\033[31mred\\033[0m\\r50%%\\r100%%\\n"), terminal=True),
    Entry(
        "a program that reads the terminal",
        ("sh", "-c", "stty -echo; echo ready; read line; echo got $line"),
        terminal=True,
        sends=(Send(typed=b"typed\n"),),
    ),
]
