"""Throughput of a trainer's output through `antifreeze run`, compared with the same output without it."""

import fcntl
import os
import pty
import subprocess
import termios
import time

from .figure import Figure, at_least
from .spread import median

TITLE = "Throughput of output"
LINE = b"epoch %07d loss 0.693147 accuracy 0.500 lr 0.001 batch 64 time 0.123 s eta 12:34\n"
FILE_BYTES = 256 << 20


def measure(bench):
    source = make_lines(bench)
    repeat = bench.pick(8, 1)
    pairs = bench.pick(5, 2)
    yield compare(bench, "to a pipe", 200, pairs, ["cat"] + [source] * repeat, to_pipe)
    yield compare(bench, "to a file", 200, pairs, ["cat"] + [source] * bench.pick(4, 1), to_file)
    yield compare(bench, "to a terminal", 50, pairs, ["cat", source], to_terminal)


def make_lines(bench):
    """Makes a file of numbered lines, which is then in the page cache."""
    path = os.path.join(bench.scratch, "lines")
    piece = b"".join(LINE % number for number in range(10_000))
    with open(path, "wb") as file:
        while file.tell() < FILE_BYTES:
            file.write(piece)
    return path


def compare(bench, where, target, pairs, command, through):
    home = bench.folder()
    rates, ratios = [], []
    for _ in range(pairs):
        sent, plain = through(bench, command, home)
        passed, guarded = through(bench, bench.guarded(command, ["--quiet"]), home)
        if passed != sent:
            raise RuntimeError(f"{where}, {sent} bytes came without antifreeze and {passed} with it")
        rates.append(passed / guarded / 1e6)
        ratios.append(plain / guarded)
    remark = f"{median(ratios):.2f} of the speed without antifreeze; {sent / 1e6:.0f} MB, {pairs} pairs"
    return Figure(where, median(rates), "MB/s", at_least(target), remark)


def to_pipe(bench, command, home):
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=bench.environment(home),
    )
    count = drain(process.stdout.fileno())
    finish(process)
    return count, time.perf_counter() - began


def to_file(bench, command, home):
    path = os.path.join(bench.scratch, "copy")
    with open(path, "wb") as file:
        began = time.perf_counter()
        finish(subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
            env=bench.environment(home),
        ))
        taken = time.perf_counter() - began
        count = file.seek(0, os.SEEK_END)
    os.remove(path)
    return count, taken


def to_terminal(bench, command, home):
    """A new terminal, whose reader is never slow."""
    ours, theirs = pty.openpty()
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=bench.environment(home),
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    count = drain(ours)
    finish(process)
    taken = time.perf_counter() - began
    os.close(ours)
    return count, taken


def drain(descriptor):
    room, count = [bytearray(1 << 20)], 0
    while True:
        try:
            taken = os.readv(descriptor, room)
        except OSError:  # Reading a terminal that no process has open is an error.
            return count
        if taken == 0:
            return count
        count += taken


def finish(process):
    if process.stdout:
        process.stdout.close()
    if process.wait():
        raise RuntimeError(f"{process.args[0]} ended with status {process.returncode}")
