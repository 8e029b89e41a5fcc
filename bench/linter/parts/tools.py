"""The other linters, installed in a separate environment."""

import os
import subprocess
import sys

# Pinned, so that ratios stay comparable.
PINNED = {"ruff": "0.17.4", "pylint": "4.1.3", "torchfix": "0.7.0", "flake8": "7.5.0"}


def cache():
    of_the_user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(of_the_user, "antifreeze-check")


def python():
    """Returns the interpreter of the environment, which is created if it is missing."""
    folder = os.path.join(cache(), "venv")
    interpreter = os.path.join(folder, "bin/python")
    if not os.path.exists(interpreter):
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return interpreter


def install_linters():
    """Installs the linters and returns their programs by name."""
    interpreter = python()
    folder = os.path.dirname(interpreter)
    wanted = [f"{name}=={version}" for name, version in PINNED.items()]
    have = subprocess.run(
        [interpreter, "-m", "pip", "freeze"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout.lower().split()
    if not set(wanted).issubset(have):
        subprocess.run([interpreter, "-m", "pip", "install", "-q", *wanted], check=True)
    return {name: os.path.join(folder, name) for name in PINNED}
