"""The guard's memory and descriptors, and whether they grow."""

import os
import time

from .bench import GuardedRun
from .figure import MIB, Figure, at_most, below, exactly
from .page import Page
from .proc import count_descriptors, memory_status

TITLE = "The guard's size"
# Pages that the kernel puts into every process, which cannot be locked.
UNLOCKABLE_BYTES = 64 << 10


def measure(bench):
    if os.getuid() == 0:
        yield from measure_as(bench, "root", ordinary=False)
    yield from measure_as(bench, "an ordinary user", ordinary=True)


def measure_as(bench, who, ordinary):
    """Measures before and after a time in which processes of the tree start and exit. At both moments only the
    permanent ones run, because the guard has descriptors open for each process."""
    # Some files of a process are opened once it has been calm for a few seconds.
    first, last = bench.pick((10, 65), (10, 19))
    trainer = bench.trainer("tree.py", 10, 0, first + 1, last - 4)
    with GuardedRun(bench, trainer, ordinary=ordinary) as run:
        began = time.monotonic()
        time.sleep(first)
        opened = count_descriptors(run.guard)
        page = Page(run.guard, run.page_fd)
        early = page.read("allocations")
        time.sleep(began + last - time.monotonic())
        sizes = memory_status(run.guard)
        grown = count_descriptors(run.guard) - opened
        allocations = page.read("allocations")
        is_reported = "lock its memory" in run.messages()
    yield Figure(f"address space, as {who}", sizes["VmSize"] / MIB, "MiB", below(8))
    yield Figure(f"resident, as {who}", sizes["VmRSS"] / 1e6, "MB", at_most(5))
    unlocked = max(sizes["VmSize"] - sizes["VmLck"] - UNLOCKABLE_BYTES, 0)
    remark = "and it says so" if is_reported else "of memory that can be"
    yield Figure(f"not locked, as {who}", unlocked / MIB, "MiB", exactly(0), remark)
    remark = f"{early} of them within the first {first} s" if allocations else ""
    yield Figure(f"allocations after start, as {who}", allocations, "", exactly(0), remark)
    remark = f"{opened} open at {first} s, processes came and went, then {last} s"
    yield Figure(f"file descriptors gained, as {who}", grown, "", exactly(0), remark)
