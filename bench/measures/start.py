"""What `antifreeze run -- true` takes beyond `true`."""

import os
import shutil
import subprocess
import time

from .figure import Figure, at_most
from .spread import interval, median

TITLE = "Time to start and end"
# As many runs as antifreeze keeps.
KEPT_RUNS = 100


def measure(bench):
    fresh = bench.folder()
    files = [open(os.path.join(bench.folder(), name), "wb") for name in ("out", "err")]
    yield one(bench, "output to /dev/null", fresh, (subprocess.DEVNULL, subprocess.DEVNULL))
    yield one(bench, "output to files", bench.folder(), files)
    yield one(bench, f"with {KEPT_RUNS} earlier runs kept", well_used(bench), files)


def one(bench, name, home, outputs):
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


def well_used(bench):
    """A home as it is after many runs."""
    home = bench.folder()
    seconds(bench, bench.guarded(["true"]), home, (subprocess.DEVNULL, subprocess.DEVNULL))
    runs = os.path.join(home, "runs")
    [first] = os.listdir(runs)
    for number in range(KEPT_RUNS - 1):
        shutil.copytree(os.path.join(runs, first), os.path.join(runs, f"20200101-000000-{number:04x}"))
    return home
