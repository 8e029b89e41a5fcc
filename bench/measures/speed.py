"""The speed that a trainer keeps under `antifreeze run`, in three ways:

- **by the clock**: blocks are interleaved: plain, guarded, plain, control, plain, guarded, …
  The guarded block and the control, which is plain too, are each compared with the plain
  blocks before and after; the control shows what the machine's own noise makes of a ratio
  that is 1.
- **undisturbed**: the same blocks, by the quicker quarter of their slices, which other
  people's work touches least. It shows what the cushion costs, and not what the guard takes
  now and then; that is the part `cpu`.
- **instructions**, counted by valgrind where it is installed: free of noise, and blind to
  what the kernel does.
"""

import json
import os
import re
import shutil
import subprocess
from statistics import quantiles

from .bench import Left
from .figure import Figure, at_least
from .spread import interval, median

TITLE = "Speed of a guarded trainer"
ALLOWED_LOSS = 0.005
KEPT = at_least(100 - ALLOWED_LOSS * 100)
WAYS = {"wall": "", "cpu": ", by its own CPU time", "undisturbed": ", undisturbed"}


def measure(bench):
    def loop(scale):
        return bench.trainer("loop.py", scale)

    yield from compare(bench, "pure Python", loop(bench.pick(1.0, 0.1)))
    yield from by_instructions(bench, "pure Python", loop)
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
    for way, words in WAYS.items():
        target = None if way == "cpu" else KEPT
        yield told(f"{name}: speed kept{words}", way, guarded, target)
        yield told(f"{name}: control, not guarded{words}", way, control)


def block(bench, command, home):
    """Seconds that the same work took, in each way."""
    done = json.loads(output(bench, command, home, subprocess.DEVNULL))
    slices = done["slices"]
    return {
        "wall": sum(slices),
        "cpu": done["cpu"],
        "undisturbed": quantiles(slices, n=4)[0],
    }


def output(bench, command, home, errors):
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        env={**bench.environment(home), "PYTHONHASHSEED": "0"}, check=True, text=True,
    ).stdout


def kept(before, middle, after):
    return {way: (before[way] + after[way]) / 2 / middle[way] for way in WAYS}


def told(name, way, rounds, target=None):
    ratios = [ratio[way] for ratio in rounds]
    low, high = interval(ratios)
    remark = f"95 % interval {low * 100:.2f}–{high * 100:.2f} of {len(ratios)}"
    if target and high - low > ALLOWED_LOSS:
        remark += "; too noisy here to tell such a small loss"
    return Figure(name, median(ratios) * 100, "%", target, remark)


def by_instructions(bench, name, trainer):
    if not shutil.which("valgrind"):
        yield Left("instructions, because valgrind is not installed")
        return
    home = bench.folder()
    counted = {}
    for scale in (0, bench.pick(0.1, 0.02)):
        # Without the start, which is measured elsewhere.
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *trainer(scale)]
        for way, whole in (("plain", command), ("guarded", bench.guarded(command, ["--quiet"]))):
            said = output(bench, ["setarch", "-R", *whole], home, subprocess.STDOUT)
            count = int(re.search(r"Collected : (\d+)", said).group(1))
            counted[way] = count - counted.get(way, 0)
    share = counted["plain"] / counted["guarded"] * 100
    remark = f"{counted['guarded'] - counted['plain']:+} of {counted['plain'] / 1e6:.0f} million"
    yield Figure(f"{name}: speed kept, by instructions", share, "%", KEPT, remark)
