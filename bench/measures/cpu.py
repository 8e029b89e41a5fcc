"""The CPU time that guarding takes: guard and front together, of one core, beside others that
watch the same machine in the same minute."""

import time

from . import others
from .bench import GuardedRun, Left
from .figure import Figure, at_most
from .page import Page
from .proc import cpu_seconds, status

TITLE = "CPU time of guarding"
PROCESSES = 10
WARM_UP = 12
# Any process younger than this is looked at often, so a calm tree must be older.
GROWN_UP = 15


def measure(bench):
    with GuardedRun(bench, bench.trainer("tree.py", PROCESSES)) as run:
        running, missing = others.start(run.front.pid, WARM_UP)
        try:
            time.sleep(bench.pick(GROWN_UP, 3))
            yield from side_by_side(bench, run, running)
        finally:
            for other in running:
                other.end()
        for name, why in missing.items():
            yield Left(f"{name}, because {why}")
    yield from at_the_edge(bench)
    yield from with_young_processes(bench)


def side_by_side(bench, run, running):
    mine, looks, seconds, theirs = spent(bench, run, running)
    ours = mine / seconds * 100
    yield Figure(
        f"calm, tree of {PROCESSES}, recording", ours, "%", at_most(0.05),
        f"{looks / seconds:.1f} looks a second",
    )
    yield Figure(
        "memory of guard and front", (resident(run.guard) + resident(run.front.pid)) / 1e6, "MB"
    )
    for other, cpu in zip(running, theirs):
        share = cpu / seconds * 100
        remark = f"{share / ours:.2g} times ours; {resident(other.pid) / 1e6:.1f} MB resident"
        yield Figure(other.name, share, "%", beside=remark)


def at_the_edge(bench):
    """Little room under the budget, so that every look may be the last before the wall."""
    trainer = bench.trainer("tree.py", PROCESSES, 40)
    with GuardedRun(bench, trainer, ["--budget", "200M"]) as run:
        time.sleep(bench.pick(GROWN_UP, 3))
        yield fastest(bench, run, "near the wall")


def with_young_processes(bench):
    trainer = bench.trainer("tree.py", PROCESSES, 0, 0, 1e9)
    with GuardedRun(bench, trainer) as run:
        time.sleep(bench.pick(GROWN_UP, 3))
        yield fastest(bench, run, "young processes all the time")


def fastest(bench, run, name):
    mine, looks, seconds, _ = spent(bench, run, [])
    pace = f"{looks / seconds:.1f} looks a second, {mine / max(looks, 1) * 1e6:.0f} µs each"
    return Figure(name, mine / seconds * 100, "%", at_most(1), pace)


def spent(bench, run, running):
    """CPU seconds of front and guard, looks taken, seconds passed, CPU seconds of others."""
    page = Page(run.guard, run.page_fd)
    pids = [run.guard, run.front.pid] + [other.pid for other in running]
    began, looks = time.monotonic(), page.read("tick")
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(bench.pick(60, 6))
    after = [cpu_seconds(pid) for pid in pids]
    seconds = time.monotonic() - began
    guard, front, *theirs = [b - a for a, b in zip(before, after)]
    return guard + front, page.read("tick") - looks, seconds, theirs


def resident(pid):
    return status(pid)["VmRSS"]
