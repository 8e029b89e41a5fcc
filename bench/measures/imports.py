"""Whether frameworks are imported under small budgets, every time.

What their libraries map is more than some of the budgets, within milliseconds: the import must succeed whether the loader or
the guard is faster. Half of the runs come through a shell and its exec, as with pyenv, and a
third with a scout that is two seconds late.
"""

import concurrent.futures
import os
import subprocess
import sys

from .bench import REPOSITORY, Left
from .figure import Figure, at_least

sys.path.insert(0, os.path.join(REPOSITORY, "lab/scenarios"))

import library

TITLE = "Imports under a budget"
FRAMEWORKS = ["torch", "tensorflow", "jax"]
# A package made for this, with libraries as large as those of CUDA.
MADE = "large_libraries"
BUDGETS = ["600MB", "1GB", "2GB"]
MB = 1_000_000
SHELL = ["sh", "-c", "exec \"$0\" \"$@\""]


def measure(bench):
    packages = make_package(bench)
    rounds = bench.pick(50, 2)
    for python in interpreters():
        for module in [*FRAMEWORKS, MADE]:
            if module != MADE and not can_import(python, module):
                yield Left(f"{module} in {version(python)}: cannot be imported without antifreeze either")
                continue
            for budget in BUDGETS:
                good = imports(bench, packages, python, module, budget, rounds)
                name = f"`import {module}`, Python {version(python)}, {budget}"
                yield Figure(name, good, f"of {rounds}", at_least(rounds))
    if framework := next((python for python in interpreters() if can_import(python, "torch")), None):
        rounds = bench.pick(8, 1)
        good = sum(at_once(bench, framework, 6) for _ in range(rounds))
        yield Figure("six `import torch` at once, 3GB for all", good, f"of {6 * rounds}", at_least(6 * rounds))


def imports(bench, packages, python, module, budget, rounds):
    """How many of so many imports succeed, two at a time."""
    def one(number):
        command = [python, "-c", f"import {module}"]
        if number % 2:
            command = SHELL + command
        environment = {**bench.environment(bench.folder()), "PYTHONPATH": paths(python, packages)}
        if number % 3 == 0:
            environment["ANTIFREEZE_TEST_SCOUT_DELAY"] = "2"
        return succeeds(bench.guarded(command, ["--budget", budget]), environment)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(one, range(rounds)))


def at_once(bench, python, count):
    """So many imports under one guard; how many of them succeed."""
    code = (
        "import subprocess, sys\n"
        f"started = [subprocess.Popen([sys.executable, '-c', 'import torch']) for _ in range({count})]\n"
        "sys.exit(sum(child.wait() != 0 for child in started))\n"
    )
    command = bench.guarded([python, "-c", code], ["--budget", "3GB"])
    environment = {**bench.environment(bench.folder()), "PYTHONPATH": paths(python)}
    return count - min(count, status(command, environment))


def succeeds(command, environment):
    return status(command, environment) == 0


def status(command, environment):
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=600)
    if run.returncode != 0:
        sys.stderr.write(run.stderr.decode(errors="replace")[-2000:])
    return run.returncode


def interpreters():
    """Those that `ANTIFREEZE_TEST_PYTHON` and `ANTIFREEZE_TEST_PYTHONS` name; the one that runs this without."""
    named = os.environ.get("ANTIFREEZE_TEST_PYTHON", "").split(":")
    named += os.environ.get("ANTIFREEZE_TEST_PYTHONS", "").split(":")
    return [python for python in named if python] or [sys.executable]


def paths(python, *more):
    """Packages of an interpreter that are in a folder of their own: `ANTIFREEZE_BENCH_PACKAGES` holds a folder for
    each version, such as 3.12."""
    folder = os.path.join(os.environ.get("ANTIFREEZE_BENCH_PACKAGES", ""), version(python))
    return ":".join([*more, *([folder] if os.path.isdir(folder) else [])])


def version(python):
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def can_import(python, module):
    environment = {**os.environ, "PYTHONPATH": paths(python)}
    command = [python, "-c", f"import {module}"]
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def make_package(bench):
    """A folder with a package that loads a library which needs others, with 600 MB of data in all."""
    folder = bench.folder()
    package = os.path.join(folder, MADE)
    os.mkdir(package)
    parts = []
    for name, file_bytes, zero_bytes in [("libfft.so", 270, 1), ("libblas.so", 100, 30), ("libsolve.so", 60, 40)]:
        parts.append(os.path.join(package, name))
        library.make_library(parts[-1], file_bytes * MB, zero_bytes * MB)
    library.make_library(os.path.join(package, "core.so"), 100 * MB, 0, *parts)
    with open(os.path.join(package, "__init__.py"), "w") as file:
        file.write("import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'core.so')).touch()\n")
    return folder
