"""The cost of the shim: at the start of Python, and in each training step.

Measured inside a guarded run, between processes that differ only by the shim. The control is a second
process without it, which shows the noise of the machine.
"""

import json
import os
import subprocess

from .bench import LeftOut
from .figure import Figure, at_most
from .spread import interval, median

TITLE = "What the shim costs"


def measure(bench):
    python = os.environ.get("ANTIFREEZE_TEST_PYTHON")
    if not python:
        raise LeftOut("the shim, because ANTIFREEZE_TEST_PYTHON names no Python that has torch")
    version = run_and_read(bench, [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).strip()
    started = run_rounds(bench, python, "start", bench.pick(100, 10))
    yield interval_figure(
        f"start of Python {version}", [(with_it - without) * 1e3 for with_it, without in started], "ms", at_most(5)
    )
    blocks = run_rounds(bench, python, "cost", bench.pick(1200, 30))
    yield interval_figure(f"of a step, Python {version}", [100 * (2 * a / (b + c) - 1) for a, b, c in blocks], "%", at_most(1))
    yield interval_figure("control, without the shim", [100 * (c / b - 1) for _, b, c in blocks], "%")
    a_step = median([b for _, b, _ in blocks]) / 20
    yield Figure("the step that it was measured on", 1e3 * a_step, "ms")


def run_rounds(bench, python, part, number):
    trainer = bench.trainer("steps.py", part, number)
    return json.loads(run_and_read(bench, bench.guarded([python, *trainer[3:]], ["--quiet"])))


def run_and_read(bench, command):
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=bench.environment(bench.folder()),
        check=True, text=True,
    ).stdout


def interval_figure(name, values, unit, target=None):
    low, high = interval(values)
    return Figure(name, median(values), unit, target, f"95 % interval {low:.2f}–{high:.2f} of {len(values)}")
