"""What an entry needs, and why it is skipped where that is missing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Iterable, List, Optional, Set

from . import folders
from .entry import Entry
from .table import PYTHON


class Machine:
    """What this machine has."""

    def __init__(self, programs: Path, entries: Iterable[Entry]) -> None:
        self.path = f"{programs}:{os.environ.get('PATH', os.defpath)}"
        wanted = {need.split()[1] for entry in entries for need in entry.needs if need.startswith("module ")}
        self.modules = installed_modules(wanted)

    def missing_need(self, entry: Entry) -> Optional[str]:
        """The reason why the entry cannot be run here."""
        for need in entry.needs:
            if need == "root":
                if os.geteuid() != 0:
                    return "it needs root"
            elif need.startswith("file "):
                if not os.path.isfile(need.split(" ", 1)[1]):
                    return f"there is no {need}"
            elif need.startswith("module "):
                if need.split()[1] not in self.modules:
                    return f"{PYTHON} has no {need}"
            elif shutil.which(need, path=self.path) is None:
                return f"there is no {need}"
        return None


def installed_modules(modules: Set[str]) -> Set[str]:
    """The modules that the Python with the frameworks can import."""
    if not modules or shutil.which(PYTHON) is None:
        return set()
    code = (
        "import importlib.util, json, sys;"
        "print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name)]))"
    )
    run = subprocess.run([PYTHON, "-c", code, *sorted(modules)], capture_output=True, text=True)
    return set(json.loads(run.stdout)) if run.returncode == 0 else set()


def compile_programs(target: Path) -> List[str]:
    """Compiles the C programs of the table, each also as a static and a setuid one. Returns what could not be compiled."""
    missing = []
    for source in sorted(folders.PROGRAMS.glob("*.c")):
        for suffix, options in (("", ()), ("-static", ("-static",))):
            made = target / (source.stem + suffix)
            command = [os.environ.get("CC", "cc"), "-O1", "-Wall", *options, "-o", str(made), str(source)]
            if shutil.which(command[0]) is None or subprocess.run(command, capture_output=True).returncode != 0:
                missing.append(made.name)
    if os.geteuid() == 0 and (target / "facts").exists():
        setuid = target / "facts-setuid"
        shutil.copy(target / "facts", setuid)
        setuid.chmod(0o4755)
    return missing
