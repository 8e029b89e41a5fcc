"""Additional time of `antifreeze run -- true` compared with `true`."""

import os
import shutil
import subprocess
import time

from .figure import Figure, at_most
from .spread import interval, median

TITLE = "Time to start and end"
# More runs than antifreeze keeps.
KEPT_RUNS = 100


def measure(bench):
    fresh = bench.folder()
    files = [open(os.path.join(bench.folder(), name), "wb") for name in ("out", "err")]
    yield compare_start(bench, "output to /dev/null", fresh, (subprocess.DEVNULL, subprocess.DEVNULL))
    yield compare_start(bench, "output to files", bench.folder(), files)
    yield compare_start(bench, f"with {KEPT_RUNS} earlier runs kept", make_used_home(bench), files)


def compare_start(bench, name, home, outputs):
    seconds(bench, ["true"], home, outputs), seconds(bench, bench.guarded(["true"]), home, outputs)
    more = []
    for _ in range(bench.pick(30, 5)):
        plain = seconds(bench, ["true"], home, outputs)
        more.append((seconds(bench, bench.guarded(["true"]), home, outputs) - plain) * 1e3)
    low, high = interval(more)
    spread = f"95 % interval {low:.1f}–{high:.1f}, worst {max(more):.1f} of {len(more)}"
    return Figure(f"`run -- true` over `true`, {name}", median(more), "ms", at_most(30), spread)


def seconds(bench, command, home, outputs):
    environment = bench.environment(home)
    began = time.perf_counter()
    subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=outputs[0], stderr=outputs[1],
        env=environment, check=True,
    )
    return time.perf_counter() - began


def make_used_home(bench):
    """Makes a home folder with many runs."""
    home = bench.folder()
    seconds(bench, bench.guarded(["true"]), home, (subprocess.DEVNULL, subprocess.DEVNULL))
    runs = os.path.join(home, "runs")
    [first] = os.listdir(runs)
    for number in range(KEPT_RUNS - 1):
        shutil.copytree(os.path.join(runs, first), os.path.join(runs, f"20200101-000000-{number:04x}"))
    return home
