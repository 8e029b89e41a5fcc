"""The speed that a trainer keeps under `antifreeze run`, in three ways:

- **wall time**: blocks alternate: plain, guarded, plain, control, plain, guarded, … The guarded block
  and the control, which is plain too, are each compared with the plain blocks before and after. The
  control shows the noise of the machine.
- **undisturbed**: the same blocks, by the faster quarter of their slices, which other programs disturb
  least. It shows the cost of the cushion, but not the CPU time of the guard, which `cpu` measures.
- **instructions**, counted by valgrind if it is installed: without noise, but also without the kernel.
"""

import json
import os
import re
import shutil
import subprocess
from statistics import quantiles

from .bench import LeftOut
from .figure import Figure, at_least
from .spread import interval, median

TITLE = "Speed of a guarded trainer"
ALLOWED_LOSS = 0.005
KEPT_TARGET = at_least(100 - ALLOWED_LOSS * 100)
WAYS = {"wall": "", "cpu": ", by its own CPU time", "undisturbed": ", undisturbed"}


def measure(bench):
    def loop(scale):
        return bench.trainer("loop.py", scale)

    yield from compare(bench, "pure Python", loop(bench.pick(1.0, 0.1)))
    yield from count_instructions(bench, "pure Python", loop)
    python = os.environ.get("ANTIFREEZE_TEST_PYTHON")
    if not python:
        yield LeftOut("torch, because ANTIFREEZE_TEST_PYTHON names no Python that has it")
        return
    trainer = [python, *bench.trainer("matmul.py", bench.pick(0.5, 0.1))[1:]]
    # -S would leave out the packages.
    trainer.remove("-S")
    yield from compare(bench, "torch, matrices and much malloc", trainer)


def compare(bench, name, trainer):
    home = bench.folder()
    guarded, control = [], []
    before = run_block(bench, trainer, home)
    for turn in range(2 * bench.pick(20, 3)):
        is_guarded = turn % 2 == 0
        middle = run_block(bench, bench.guarded(trainer) if is_guarded else trainer, home)
        after = run_block(bench, trainer, home)
        (guarded if is_guarded else control).append(kept_speed(before, middle, after))
        before = after
    for way, words in WAYS.items():
        target = None if way == "cpu" else KEPT_TARGET
        yield speed_figure(f"{name}: speed kept{words}", way, guarded, target)
        yield speed_figure(f"{name}: control, not guarded{words}", way, control)


def run_block(bench, command, home):
    """Runs a block. Returns its seconds, in each way of measuring."""
    done = json.loads(read_output(bench, command, home, subprocess.DEVNULL))
    slices = done["slices"]
    return {
        "wall": sum(slices),
        "cpu": done["cpu"],
        "undisturbed": quantiles(slices, n=4)[0],
    }


def read_output(bench, command, home, errors):
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        env={**bench.environment(home), "PYTHONHASHSEED": "0"}, check=True, text=True,
    ).stdout


def kept_speed(before, middle, after):
    return {way: (before[way] + after[way]) / 2 / middle[way] for way in WAYS}


def speed_figure(name, way, rounds, target=None):
    ratios = [ratio[way] for ratio in rounds]
    low, high = interval(ratios)
    remark = f"95 % interval {low * 100:.2f}–{high * 100:.2f} of {len(ratios)}"
    if target and high - low > ALLOWED_LOSS:
        remark += "; too noisy here to tell such a small loss"
    return Figure(name, median(ratios) * 100, "%", target, remark)


def count_instructions(bench, name, trainer):
    if not shutil.which("valgrind"):
        yield LeftOut("instructions, because valgrind is not installed")
        return
    home = bench.folder()
    counted = {}
    for scale in (0, bench.pick(0.1, 0.02)):
        # The difference of two scales, so that the start does not count.
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *trainer(scale)]
        for way, whole in (("plain", command), ("guarded", bench.guarded(command, ["--quiet"]))):
            printed = read_output(bench, ["setarch", "-R", *whole], home, subprocess.STDOUT)
            count = int(re.search(r"Collected : (\d+)", printed).group(1))
            counted[way] = count - counted.get(way, 0)
    share = counted["plain"] / counted["guarded"] * 100
    remark = f"{counted['guarded'] - counted['plain']:+} of {counted['plain'] / 1e6:.0f} million"
    yield Figure(f"{name}: speed kept, by instructions", share, "%", KEPT_TARGET, remark)
