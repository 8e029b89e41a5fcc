"""Compilers, interpreters and tools that people run."""

from __future__ import annotations

import os

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
    Entry("ptrace of every system call", ("traces", "sh", "-c", "ls / | wc -l >/dev/null; exit 6"), needs=("traces",)),
    Entry("strace of Python", ("strace", "-f", "-o", "/dev/null", "python3", "-c", "import json; print(4)"),
          needs=("strace", "python3")),
    Entry("gdb of Python", ("gdb", "-q", "-batch", "-nx", "-ex", "run", "-ex", "bt", "--args", "/usr/bin/python3", "-I",
                            "-c", "print('debugged')"),
          needs=("gdb", "/usr/bin/python3"), masks=(r"process \d+",), heavy=True),
    Entry("valgrind of a program with threads", ("valgrind", "-q", "allocates"), needs=("valgrind", "allocates"),
          heavy=True),
    Entry("a static busybox", ("busybox", "sh", "-c", "seq 5 | sort -r | head -n 2; exit 9"), needs=("busybox",)),
    Entry("busybox as many programs", ("busybox", "find", "/etc/passwd", "-exec", "busybox", "wc", "-c", "{}", ";"),
          needs=("busybox",)),
    Entry(
        "a musl program",
        ("sh", "-c", "musl-gcc -O1 -o made allocates.c -pthread && ./made"),
        brings=("allocates.c",),
        needs=("musl-gcc",),
    ),
    Entry(
        "a static musl program",
        ("sh", "-c", "musl-gcc -O1 -static -o made allocates.c -pthread && ./made"),
        brings=("allocates.c",),
        needs=("musl-gcc",),
    ),
    Entry("sudo", ("sudo", "-n", "sh", "-c", "id -u; exit 5"), needs=("sudo", "root")),
    Entry("sudo to another user", ("sudo", "-n", "-u", "nobody", "sh", "-c", "id -un; exit 5"), needs=("sudo", "root")),
    Entry("sudo as an ordinary user", ("sudo", "-n", "true"), around=AS_USER, owner=ORDINARY_USER,
          needs=("setpriv", "sudo", "root")),
    Entry(
        "screen",
        ("screen", "-D", "-m", "sh", "-c", "echo inside > made"),
        env={"SCREENDIR": "/tmp/screens", "TERM": "xterm"},
        needs=("screen",),
    ),
    Entry(
        "bubblewrap",
        ("bwrap", "--bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-pid", "sh", "-c", "echo $$; exit 4"),
        needs=("bwrap", "root"),
    ),
    Entry(
        "bubblewrap with another root",
        ("bwrap", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
         "--symlink", "usr/lib64", "/lib64", "sh", "-c", "ls /; exit 4"),
        needs=("bwrap", "root"),
    ),
    Entry("libfaketime", ("faketime", "-f", "@2020-12-24 00:00:00", "date", "+%Y"), needs=("faketime",)),
    Entry(
        "Python under libfaketime",
        ("faketime", "-f", "+10d", "python3", "-c", "import time; print(time.time() > 1e9, len(bytes(99 << 20)))"),
        needs=("faketime", "python3"),
    ),
    Entry(
        "a go build",
        ("sh", "-c", 'mkdir "$TMPDIR/made"; cd "$TMPDIR/made"; '
         "printf 'package main\nimport \"os\"\nfunc main() { println(6 * 7); os.Exit(3) }' > main.go; "
         'HOME="$PWD" GO111MODULE=off go build -o program main.go && ./program; '
         'status=$?; rm -rf "$TMPDIR/made"; exit $status'),
        needs=("go",),
        heavy=True,
    ),
    Entry(
        "a cargo build",
        ("sh", "-c", 'mkdir "$TMPDIR/made"; cd "$TMPDIR/made"; export HOME="$PWD" CARGO_HOME="$PWD/home"; '
         "cargo init -q --vcs none --name program . && cargo build -q --offline && target/debug/program; "
         'status=$?; rm -rf "$TMPDIR/made"; exit $status'),
        env={"RUSTUP_HOME": os.environ.get("RUSTUP_HOME") or os.path.expanduser("~/.rustup")},
        needs=("cargo",),
        heavy=True,
    ),
    Entry("the client of docker", ("docker", "version", "--format", "{{.Client.Version}}"), needs=("docker",)),
    Entry(
        "a time namespace",
        ("unshare", "--time", "--monotonic", "100000", "--fork", "sh", "-c", "cut -d. -f1 /proc/uptime >/dev/null; exit 6"),
        needs=("unshare", "root"),
    ),
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
