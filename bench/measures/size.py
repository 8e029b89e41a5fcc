"""How small the guard is while it guards, and that it stays so."""

import os
import time

from .bench import GuardedRun
from .figure import MIB, Figure, at_most, below, exactly
from .page import Page
from .proc import descriptors, status

TITLE = "The guard's size"
# Not lockable: the pages that the kernel itself puts into every process.
KERNELS_OWN = 64 << 10


def measure(bench):
    if os.getuid() == 0:
        yield from one(bench, "root", ordinary=False)
    yield from one(bench, "an ordinary user", ordinary=True)


def one(bench, who, ordinary):
    """A tree whose processes come and go between the first look and the second. Both looks
    are at rest: the guard keeps a descriptor for each process that lives."""
    first, last = bench.pick((5, 60), (5, 14))
    trainer = bench.trainer("tree.py", 10, 0, first + 1, last - 4)
    with GuardedRun(bench, trainer, ordinary=ordinary) as run:
        began = time.monotonic()
        time.sleep(first)
        opened = descriptors(run.guard)
        page = Page(run.guard, run.page_fd)
        early = page.read("allocations")
        time.sleep(began + last - time.monotonic())
        sizes = status(run.guard)
        grown = descriptors(run.guard) - opened
        allocations = page.read("allocations")
        said = "lock its memory" in run.words()
    yield Figure(f"address space, as {who}", sizes["VmSize"] / MIB, "MiB", below(8))
    yield Figure(f"resident, as {who}", sizes["VmRSS"] / 1e6, "MB", at_most(5))
    unlocked = max(sizes["VmSize"] - sizes["VmLck"] - KERNELS_OWN, 0)
    remark = "and it says so" if said else "of memory that can be"
    yield Figure(f"not locked, as {who}", unlocked / MIB, "MiB", exactly(0), remark)
    remark = f"{early} of them within the first {first} s" if allocations else ""
    yield Figure(f"allocations after start, as {who}", allocations, "", exactly(0), remark)
    remark = f"{opened} open at {first} s, processes came and went, then {last} s"
    yield Figure(f"file descriptors gained, as {who}", grown, "", exactly(0), remark)
