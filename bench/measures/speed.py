"""The speed that a trainer keeps under `antifreeze run`.

Blocks are interleaved: plain, guarded, plain, control, plain, guarded, … The guarded block
and the control, which is plain too, are each compared with the plain blocks before and
after; the control shows what the machine's own noise makes of a ratio that is 1.
"""

import json
import os
import subprocess

from .bench import Left
from .figure import Figure, at_least
from .spread import interval, median

TITLE = "Speed of a guarded trainer"
ALLOWED_LOSS = 0.005


def measure(bench):
    yield from compare(bench, "pure Python", bench.trainer("loop.py", bench.pick(1.0, 0.1)))
    python = os.environ.get("ANTIFREEZE_TEST_PYTHON")
    if not python:
        yield Left("torch, because ANTIFREEZE_TEST_PYTHON names no Python that has it")
        return
    trainer = [python, *bench.trainer("matmul.py", bench.pick(0.5, 0.1))[1:]]
    # With its packages, so without the flag that leaves them out.
    trainer.remove("-S")
    yield from compare(bench, "torch, matrices and much malloc", trainer)


def compare(bench, name, trainer):
    home = bench.folder()
    guarded, control = [], []
    before = block(bench, trainer, home)
    for turn in range(2 * bench.pick(20, 3)):
        is_guarded = turn % 2 == 0
        middle = block(bench, bench.guarded(trainer) if is_guarded else trainer, home)
        after = block(bench, trainer, home)
        (guarded if is_guarded else control).append(kept(before, middle, after))
        before = after
    yield from told(f"{name}: speed kept", "wall", guarded, at_least(100 - ALLOWED_LOSS * 100))
    yield from told(f"{name}: control, not guarded", "wall", control)
    yield from told(f"{name}: speed kept, by its own CPU time", "cpu", guarded)
    yield from told(f"{name}: control, by its own CPU time", "cpu", control)


def block(bench, command, home):
    """Seconds that the same work took, by the clock and of CPU, as the trainer says."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=bench.environment(home), check=True,
    )
    return json.loads(done.stdout)


def kept(before, middle, after):
    return {way: (before[way] + after[way]) / 2 / middle[way] for way in ("wall", "cpu")}


def told(name, way, rounds, target=None):
    ratios = [ratio[way] for ratio in rounds]
    low, high = interval(ratios)
    remark = f"95 % interval {low * 100:.2f}–{high * 100:.2f} of {len(ratios)}"
    if target and high - low > ALLOWED_LOSS:
        remark += "; too noisy here to tell such a small loss"
    yield Figure(name, median(ratios) * 100, "%", target, remark)
