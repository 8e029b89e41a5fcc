"""Compares the speed of `antifreeze check` with other linters on the same two cores.

ruff and antifreeze take turns on the whole tree, and each turn of ours is compared with the
turns of ruff's before and after it. pylint and TorchFix would take an hour there, so they get
one package of the tree, and antifreeze the same package before and after them. They use both
cores too, and see no other package: what they would import is not looked for.
"""

import os
import subprocess
import tempfile
import time
from contextlib import contextmanager
from typing import NamedTuple

from measures.bench import LeftOut
from measures.figure import Figure, at_least, at_most
from measures.spread import interval, median

from . import tools
from .corpus import Corpus, count

TITLE = "Speed of checking"
CORES = 2
SLOW = "lightning/lightning"
SLOW_FOR_A_TRIAL = "lightning/lightning/fabric/utilities"


class Turn(NamedTuple):
    seconds: float
    # Of the largest of its processes, in bytes. Never less than this program's own size, which
    # a new process has until it becomes another program.
    peak: int


def measure(bench):
    corpus, programs = Corpus(), tools.install_linters()
    for why in corpus.fetch("library"):
        yield LeftOut(f"{why}")
    tree = corpus.tree("library")
    files, lines, size = count(tree)
    if not files:
        raise LeftOut("everything, because the tree is empty")
    yield Figure("the tree", lines / 1e6, "M lines", None, f"{files} files, {size / 1e6:.0f} MB")
    part = os.path.join(tree, bench.pick(SLOW, SLOW_FOR_A_TRIAL))
    with pin_to_two_cores() as cores:
        yield from compare_with_ruff(bench, programs["ruff"], tree, lines, cores)
        yield from compare_with_slow_linters(bench, programs, part, cores)


def compare_with_ruff(bench, ruff, tree, lines, cores):
    ours = [bench.program, "check", "--output-format", "concise", "."]
    theirs = [ruff, "check", "--select", "F", "--no-cache", "--isolated", "-q",
              "--output-format", "concise", "."]
    mine, ratios, peaks = [], [], []
    # One run each to fill the page cache.
    time_run(bench, ours, tree)
    before = time_run(bench, theirs, tree)
    for _ in range(bench.pick(15, 2)):
        turn = time_run(bench, ours, tree)
        after = time_run(bench, theirs, tree)
        mine.append(turn.seconds)
        ratios.append(2 * turn.seconds / (before.seconds + after.seconds))
        peaks.append((turn.peak, after.peak))
        before = after
    low, high = interval(mine)
    yield Figure(
        f"lines a second, {cores} cores", lines / median(mine) / 1e6, "M", at_least(1),
        f"{median(mine):.2f} s, 95 % interval {low:.2f}–{high:.2f} of {len(mine)}",
    )
    low, high = interval(ratios)
    yield Figure(
        "time, of `ruff check --select F`'s", median(ratios), "times", at_most(2),
        f"95 % interval {low:.2f}–{high:.2f}; ruff {tools.PINNED['ruff']} without its cache",
    )
    yield Figure(
        "peak memory", max(own for own, _ in peaks) / 1e6, "MB", at_most(200),
        f"ruff {max(other for _, other in peaks) / 1e6:.0f} MB",
    )


def compare_with_slow_linters(bench, programs, folder, cores):
    _, lines, _ = count(folder)
    ours = [bench.program, "check", "--output-format", "concise", "."]
    others = {
        "pylint": [programs["pylint"], f"-j{cores}", "--rcfile=/dev/null", "--recursive=y", "."],
        # Its own command takes half as long again.
        "TorchFix": [programs["flake8"], f"-j{cores}", "--isolated", "--select=TOR0,TOR1,TOR2", "."],
    }
    for name, command in others.items():
        around = [time_run(bench, ours, folder).seconds for _ in range(bench.pick(5, 1))]
        turn = time_run(bench, command, folder)
        around += [time_run(bench, ours, folder).seconds for _ in range(bench.pick(5, 1))]
        yield Figure(
            f"speed, of {name}'s", turn.seconds / median(around), "times", at_least(30),
            f"{name} {tools.PINNED[name.lower()]}, {lines} lines in {turn.seconds:.1f} s, "
            f"{lines / turn.seconds:.0f} a second; {turn.peak / 1e6:.0f} MB",
        )


def time_run(bench, command, folder):
    with tempfile.TemporaryFile(dir=bench.scratch) as errors:
        began = time.perf_counter()
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, env=bench.environment(bench.scratch),
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if not is_done(os.path.basename(command[0]), process.returncode):
            errors.seek(0)
            said = errors.read()[-2000:].decode(errors="replace")
            raise RuntimeError(f"{' '.join(command)}: status {process.returncode}\n{said}")
    return Turn(seconds, used.ru_maxrss * 1024)


def is_done(program, status):
    """Whether a linter finished. The bits of pylint's status are kinds of messages, and 32 is a
    usage error."""
    return 0 <= status < 32 if program == "pylint" else status in (0, 1)


@contextmanager
def pin_to_two_cores():
    """Limits new processes to two cores and yields the number of cores used."""
    all_of_them = os.sched_getaffinity(0)
    two = sorted(all_of_them)[:CORES]
    os.sched_setaffinity(0, two)
    try:
        yield len(two)
    finally:
        os.sched_setaffinity(0, all_of_them)
