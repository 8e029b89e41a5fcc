"""Compilers, interpreters and tools that people run."""

from __future__ import annotations

from ..entry import Entry
from .initial_state import AS_USER, ORDINARY_USER

ENTRIES = [
    Entry(
        "gcc",
        ("sh", "-c", "cc -O2 -o made signals.c && ./made read"),
        needs=("cc",),
        brings=("signals.c",),
        stdin=b"",
    ),
    Entry("a static C program", ("signals-static", "read"), needs=("signals-static",), stdin=b"x"),
    Entry("make", ("make", "-j2", "-f", "-"), stdin=b"all: a b\n\t@echo all\na b:\n\t@touch $@\n", needs=("make",)),
    Entry("git", ("bash", "git.sh"), needs=("git",), brings=("git.sh",)),
    Entry("perl", ("perl", "-e", 'print "ok\\n" if fork == 0; wait; exit 7'), needs=("perl",)),
    Entry(
        "node",
        ("node", "-e", "setTimeout(() => { console.log(process.version); process.exit(3) }, 5)"),
        needs=("node",),
    ),
    Entry("node with workers", ("node", "workers.js"), needs=("node",), brings=("workers.js",)),
    Entry("java", ("java", "Hello.java"), needs=("java",), brings=("Hello.java",), heavy=True),
    Entry("java -version", ("java", "-version"), needs=("java",)),
    Entry("cargo --version", ("cargo", "--version"), needs=("cargo",)),
    Entry(
        "rustc",
        ("sh", "-c", "echo 'fn main() { std::process::exit(9) }' | rustc -o made - && ./made"),
        needs=("rustc",),
        heavy=True,
    ),
    Entry(
        "tar and gzip",
        ("sh", "-c", "tar -C /etc -czf - passwd group | tar -tzv | awk '{print $NF}'"),
        needs=("tar", "gzip"),
    ),
    Entry("xz with threads", ("sh", "-c", "seq 200000 | xz -T2 | xz -d | sha256sum"), needs=("xz",)),
    Entry(
        "sort with threads",
        ("sh", "-c", "seq 200000 | shuf --random-source=/bin/sh | sort -n --parallel=2 | md5sum"),
    ),
    Entry(
        "sqlite3",
        ("sqlite3", "data", "create table t(x); insert into t values (1), (2); select sum(x) from t;"),
        needs=("sqlite3",),
    ),
    Entry("jq", ("jq", "-c", "map(. + 1)"), stdin=b"[1, 2]", needs=("jq",)),
    Entry("awk", ("awk", "BEGIN { while (i++ < 5) print i * i }")),
    Entry(
        "strace",
        ("strace", "-f", "-o", "/dev/null", "-e", "trace=execve", "sh", "-c", "echo traced; exit 6"),
        needs=("strace",),
    ),
    Entry(
        "gdb",
        ("gdb", "-q", "-batch", "-nx", "-ex", "run", "--args", "sh", "-c", "exit 5"),
        needs=("gdb",),
        masks=(r"process \d+",),
    ),
    Entry("valgrind", ("valgrind", "-q", "true"), needs=("valgrind",), heavy=True),
    Entry("script", ("script", "-qec", "tty >/dev/null && echo on a terminal; exit 4", "/dev/null"), needs=("script",)),
    Entry(
        "unshare",
        ("unshare", "--mount", "--pid", "--fork", "sh", "-c", "echo $$; exit 2"),
        needs=("unshare", "root"),
    ),
    Entry("chroot", ("chroot", "/", "sh", "-c", "echo inside; exit 2"), needs=("chroot", "root")),
    Entry(
        "a change of user inside the run",
        (*AS_USER, "sh", "-c", "id -u; id -g; exit 8"),
        needs=("setpriv", "root"),
    ),
    Entry(
        "su of an ordinary user",
        ("su", "--version"),
        around=AS_USER,
        owner=ORDINARY_USER,
        needs=("setpriv", "su", "root"),
    ),
    Entry(
        "an ordinary user",
        ("sh", "-c", "id -u; echo x > file; exit 5"),
        around=AS_USER,
        owner=ORDINARY_USER,
        needs=("setpriv", "root"),
    ),
]
