"""Time of `import antifreeze` in an empty environment, and the cost of `antifreeze.step` in a step that fits."""

import json
import os
import subprocess
import sys
import time

from .bench import REPOSITORY, LeftOut
from .figure import Figure, at_most
from .shim import interval_figure, run_and_read
from .spread import interval, median

TITLE = "What the SDK costs"


def measure(bench):
    yield from measure_import(bench)
    python = os.environ.get("ANTIFREEZE_TEST_PYTHON")
    if not python:
        raise LeftOut("steps, because ANTIFREEZE_TEST_PYTHON names no Python that has torch")
    trainer = bench.trainer("parts.py", os.path.join(REPOSITORY, "python"), bench.pick(300, 20))
    rounds = json.loads(run_and_read(bench, [python, *trainer[3:]]))
    yield interval_figure("`antifreeze.step` over `loss.backward()`", [(with_it - without) * 1e6 for with_it, without in rounds], "µs")
    yield Figure("the step that it was measured on", 1e3 * median([without for _, without in rounds]), "ms")


def measure_import(bench):
    """The package is installed by pip; after the first import its byte code is cached."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folder = bench.folder()
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = os.path.join(folder, "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", REPOSITORY], check=True)

    def milliseconds(text):
        began = time.perf_counter()
        subprocess.run([python, "-c", text], env=environment, cwd=folder, check=True)
        return 1e3 * (time.perf_counter() - began)

    milliseconds("import antifreeze"), milliseconds("pass")
    rounds = [(milliseconds("import antifreeze"), milliseconds("pass")) for _ in range(bench.pick(50, 10))]
    low, high = interval([taken for taken, _ in rounds])
    remark = f"95 % interval {low:.1f}–{high:.1f} of {len(rounds)}; `python -c pass` {median([bare for _, bare in rounds]):.1f}"
    yield Figure('`python -c "import antifreeze"`, all of it', median([taken for taken, _ in rounds]), "ms", at_most(20), remark)
