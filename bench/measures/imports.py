"""How often importing a framework succeeds under a small budget.

Libraries map more than some of the budgets, within milliseconds. The import must succeed whether the loader or the guard is
faster. Half of the imports are started by a shell and its exec, as with pyenv, and a third have a slow worker that is
two seconds late.
"""

import concurrent.futures
import os
import subprocess
import sys

from .bench import REPOSITORY, LeftOut
from .figure import Figure, at_least

sys.path.insert(0, os.path.join(REPOSITORY, "lab/scenarios"))

import library

TITLE = "Imports under a budget"
FRAMEWORKS = ["torch", "tensorflow", "jax"]
# A package that is made here, with libraries as large as those of CUDA.
MADE_PACKAGE = "large_libraries"
BUDGETS = ["600MB", "1GB", "2GB"]
MB = 1_000_000
SHELL = ["sh", "-c", "exec \"$0\" \"$@\""]


def measure(bench):
    packages = make_package(bench)
    rounds = bench.pick(50, 2)
    for python in find_interpreters():
        for module in [*FRAMEWORKS, MADE_PACKAGE]:
            if module != MADE_PACKAGE and not can_import(python, module):
                yield LeftOut(f"{module} in {python_version(python)}: cannot be imported without antifreeze either")
                continue
            for budget in BUDGETS:
                succeeded = count_imports(bench, packages, python, module, budget, rounds)
                name = f"`import {module}`, Python {python_version(python)}, {budget}"
                yield Figure(name, succeeded, f"of {rounds}", at_least(rounds))
    if framework := next((python for python in find_interpreters() if can_import(python, "torch")), None):
        rounds = bench.pick(8, 1)
        succeeded = sum(count_imports_at_once(bench, framework, 6) for _ in range(rounds))
        yield Figure("six `import torch` at once, 3GB for all", succeeded, f"of {6 * rounds}", at_least(6 * rounds))


def count_imports(bench, packages, python, module, budget, rounds):
    """How many of `rounds` imports succeed, two at a time."""
    def import_once(number):
        command = [python, "-c", f"import {module}"]
        if number % 2:
            command = SHELL + command
        environment = {**bench.environment(bench.folder()), "PYTHONPATH": python_path(python, packages)}
        if number % 3 == 0:
            environment["ANTIFREEZE_TEST_SCOUT_DELAY"] = "2"
        return succeeds(bench.guarded(command, ["--budget", budget]), environment)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return sum(pool.map(import_once, range(rounds)))


def count_imports_at_once(bench, python, count):
    """How many of `count` simultaneous imports under one guard succeed."""
    code = (
        "import subprocess, sys\n"
        f"started = [subprocess.Popen([sys.executable, '-c', 'import torch']) for _ in range({count})]\n"
        "sys.exit(sum(child.wait() != 0 for child in started))\n"
    )
    command = bench.guarded([python, "-c", code], ["--budget", "3GB"])
    environment = {**bench.environment(bench.folder()), "PYTHONPATH": python_path(python)}
    return count - min(count, exit_status(command, environment))


def succeeds(command, environment):
    return exit_status(command, environment) == 0


def exit_status(command, environment):
    run = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=600)
    if run.returncode != 0:
        sys.stderr.write(run.stderr.decode(errors="replace")[-2000:])
    return run.returncode


def find_interpreters():
    """The Pythons of `ANTIFREEZE_TEST_PYTHON` and `ANTIFREEZE_TEST_PYTHONS`; this one if there are none."""
    named = os.environ.get("ANTIFREEZE_TEST_PYTHON", "").split(":")
    named += os.environ.get("ANTIFREEZE_TEST_PYTHONS", "").split(":")
    return [python for python in named if python] or [sys.executable]


def python_path(python, *more):
    """PYTHONPATH for an interpreter: `ANTIFREEZE_BENCH_PACKAGES` contains a folder for each version, such as 3.12."""
    folder = os.path.join(os.environ.get("ANTIFREEZE_BENCH_PACKAGES", ""), python_version(python))
    return ":".join([*more, *([folder] if os.path.isdir(folder) else [])])


def python_version(python):
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def can_import(python, module):
    environment = {**os.environ, "PYTHONPATH": python_path(python)}
    command = [python, "-c", f"import {module}"]
    return subprocess.run(command, env=environment, capture_output=True).returncode == 0


def make_package(bench):
    """Makes a folder with a package whose library depends on others, with 600 MB of data together."""
    folder = bench.folder()
    package = os.path.join(folder, MADE_PACKAGE)
    os.mkdir(package)
    parts = []
    for name, file_bytes, zero_bytes in [("libfft.so", 270, 1), ("libblas.so", 100, 30), ("libsolve.so", 60, 40)]:
        parts.append(os.path.join(package, name))
        library.make_library(parts[-1], file_bytes * MB, zero_bytes * MB)
    library.make_library(os.path.join(package, "core.so"), 100 * MB, 0, *parts)
    with open(os.path.join(package, "__init__.py"), "w") as file:
        file.write("import ctypes, os\nctypes.CDLL(os.path.join(os.path.dirname(__file__), 'core.so')).touch()\n")
    return folder
