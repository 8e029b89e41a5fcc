"""CPU time of guard and front, as a share of one core, compared with programs that watch the same
machine in the same minute."""

import time

from . import others
from .bench import GuardedRun, LeftOut
from .figure import Figure, at_most
from .page import Page
from .proc import cpu_seconds, memory_status

TITLE = "CPU time of guarding"
PROCESSES = 10
WARM_UP_SECONDS = 12
# A younger process is sampled often, so a calm tree must be older.
CALM_AFTER_SECONDS = 15


def measure(bench):
    with GuardedRun(bench, bench.trainer("tree.py", PROCESSES)) as run:
        running, missing = others.start_programs(run.front.pid, WARM_UP_SECONDS)
        try:
            time.sleep(bench.pick(CALM_AFTER_SECONDS, 3))
            yield from measure_calm(bench, run, running)
        finally:
            for other in running:
                other.end()
        for name, why in missing.items():
            yield LeftOut(f"{name}, because {why}")
    yield from measure_near_wall(bench)
    yield from measure_young_processes(bench)


def measure_calm(bench, run, running):
    mine, samples, seconds, theirs = measure_cpu_time(bench, run, running)
    ours = mine / seconds * 100
    yield Figure(
        f"calm, tree of {PROCESSES}, recording", ours, "%", at_most(0.05),
        f"{samples / seconds:.1f} samples a second",
    )
    yield Figure(
        "memory of guard and front", (resident_bytes(run.guard) + resident_bytes(run.front.pid)) / 1e6, "MB"
    )
    for other, cpu in zip(running, theirs):
        share = cpu / seconds * 100
        remark = f"{share / ours:.2g} times ours; {resident_bytes(other.pid) / 1e6:.1f} MB resident"
        yield Figure(other.name, share, "%", remark=remark)


def measure_near_wall(bench):
    """Little headroom, so that the guard samples at its fastest pace."""
    trainer = bench.trainer("tree.py", PROCESSES, 40)
    with GuardedRun(bench, trainer, ["--budget", "200M"]) as run:
        time.sleep(bench.pick(CALM_AFTER_SECONDS, 3))
        yield fast_pace_figure(bench, run, "near the wall")


def measure_young_processes(bench):
    trainer = bench.trainer("tree.py", PROCESSES, 0, 0, 1e9)
    with GuardedRun(bench, trainer) as run:
        time.sleep(bench.pick(CALM_AFTER_SECONDS, 3))
        yield fast_pace_figure(bench, run, "young processes all the time")


def fast_pace_figure(bench, run, name):
    mine, samples, seconds, _ = measure_cpu_time(bench, run, [])
    pace = f"{samples / seconds:.1f} samples a second, {mine / max(samples, 1) * 1e6:.0f} µs each"
    return Figure(name, mine / seconds * 100, "%", at_most(1), pace)


def measure_cpu_time(bench, run, running):
    """CPU seconds of front and guard, number of samples, seconds, CPU seconds of the other programs."""
    page = Page(run.guard, run.page_fd)
    pids = [run.guard, run.front.pid] + [other.pid for other in running]
    began, samples = time.monotonic(), page.read("tick")
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(bench.pick(60, 6))
    after = [cpu_seconds(pid) for pid in pids]
    seconds = time.monotonic() - began
    guard, front, *theirs = [b - a for a, b in zip(before, after)]
    return guard + front, page.read("tick") - samples, seconds, theirs


def resident_bytes(pid):
    return memory_status(pid)["VmRSS"]
