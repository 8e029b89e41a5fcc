"""Runs an entry once and returns what was observed, by aspect."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional

from .entry import Entry, Send
from .folders import Folders
from .own_lines import split_own_lines

#: How a program is run.
ALONE: List[str] = []
QUIET = ["antifreeze", "run", "--quiet", "--"]
LOUD = ["antifreeze", "run", "--"]

#: The value of each aspect.
Observation = Dict[str, str]

#: The aspect that holds what antifreeze itself has printed.
OWN_LINES = "lines of antifreeze"
#: A run gets empty ones of its own where that is possible, and whatever is left in them is observed.
PRIVATE_FOLDERS = ("/dev/shm", "/var/tmp", "/tmp")
SUPERVISOR = Path(__file__).with_name("supervise.py")
#: Numbers that the kernel gives out, which differ from run to run.
KERNEL_NUMBERS = re.compile(r"(pipe|socket|anon_inode|pty):\[\d+\]|/dev/pts/\d+")


def observe(entry: Entry, how: List[str], folders: Folders, path: str) -> Observation:
    """Runs the entry in empty folders."""
    folders.recreate(iter(entry.brings), entry.owner)
    result = supervise(entry, how, folders, path)
    seen = {
        "status": result["status"],
        "stopped by": ", ".join(result["stops"]) or "nothing",
        "output held open": ", ".join(result["open"]) or "no",
        "leftover processes": ", ".join(result["leftovers"]) or "none",
        "leftover cgroups": "\n".join(result["cgroups"]) or "none",
    }
    seen.update((f"leftover {name}", ", ".join(found) or "none") for name, found in result["namespace"].items())
    seen.update((f"file {masked(name, entry)}", masked(value, entry)) for name, value in folders.files().items())

    errors, own_errors = base64.b64decode(result["stderr"]["kept"]), b""
    output, own_output = base64.b64decode(result["stdout"]["kept"]), b""
    if how is not ALONE:
        errors, own_errors = split_own_lines(errors)
        if entry.terminal or entry.one_output:
            output, own_output = split_own_lines(output)
    seen[OWN_LINES] = text(own_output + own_errors, "", entry) or "none"
    seen["stderr"] = text(errors, result["stderr"]["rest"], entry)
    printed = text(output, result["stdout"]["rest"], entry)
    if entry.facts:
        seen.update(facts(printed, {result["pid"]: "the job", result["session"]: "the session leader"}))
    else:
        seen["stdout"] = printed
    return seen


def supervise(entry: Entry, how: List[str], folders: Folders, path: str) -> Dict[str, Any]:
    specification = {
        "command": [*entry.around, *how, *entry.command],
        "env": environment(folders, path, entry.env),
        "folder": str(folders.work),
        "antifreeze": str(folders.antifreeze),
        "stdin": None if entry.stdin is None else base64.b64encode(entry.stdin).decode(),
        "terminal": entry.terminal,
        "sends": [described(send) for send in entry.sends],
        "root": str(folders.base.parent),
        "private": private_folders(entry, path, folders.base.parent),
        "leaves": entry.leaves,
        "timeout": entry.timeout,
        "patience": entry.patience,
    }
    given, got = folders.base.with_suffix(".run"), folders.base.with_suffix(".result")
    given.write_text(json.dumps(specification))
    got.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-I", "-S", str(SUPERVISOR), str(given), str(got)], check=True)
    result: Dict[str, Any] = json.loads(got.read_text())
    return result


def environment(folders: Folders, path: str, more: Mapping[str, Optional[str]]) -> Dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ANTIFREEZE_")}
    for name in ("LD_PRELOAD", "PYTHONPATH", "OLDPWD", "_"):
        ours.pop(name, None)
    # Messages of programs do not depend on the locale and the terminal that the suite is started from.
    ours.update(folders.environment(), PATH=path, LC_ALL="C.UTF-8", TERM="xterm")
    for name, value in more.items():
        if value is None:
            ours.pop(name, None)
        else:
            ours[name] = value
    return ours


def described(send: Send) -> Dict[str, Any]:
    return {
        "signals": [signal_number(name) for name in send.signals],
        "typed": base64.b64encode(send.typed).decode(),
        "to_group": send.to_group,
        "resize": send.resize,
        "after": base64.b64encode(send.after).decode(),
    }


def private_folders(entry: Entry, path: str, root: Path) -> List[str]:
    """The folders that contain nothing that the run needs, except its own folders."""
    words = [word for word in [*entry.command, *entry.around, *path.split(":"), sys.prefix] if word.startswith("/")]
    needed = [
        Path(word)
        for word in [*words, *map(os.path.realpath, words)]
        if root not in [Path(word), *Path(word).parents]
    ]
    return [folder for folder in PRIVATE_FOLDERS if not any(Path(folder) in word.parents for word in needed)]


def signal_number(name: str) -> int:
    base, _, offset = name.partition("+")
    return int(getattr(signal, f"SIG{base}")) + int(offset or 0)


def text(kept: bytes, rest: str, entry: Entry) -> str:
    """The output as text without loss, in which everything that changes from run to run is masked."""
    shown = kept.decode(errors="surrogateescape")
    shown = masked(KERNEL_NUMBERS.sub(lambda found: re.sub(r"\d+", "N", found[0]), shown), entry)
    return f"{shown}({rest})" if rest else shown


def masked(shown: str, entry: Entry) -> str:
    for mask in entry.masks:
        shown = re.sub(mask, "(masked)", shown)
    return shown


def facts(printed: str, names: Mapping[int, str]) -> Observation:
    """Each line as an aspect. Known process IDs are replaced by names."""
    seen: Observation = {}
    for line in printed.replace("\r\n", "\n").splitlines():
        name, separator, value = line.partition(": ")
        if not separator:
            name, value = "text", seen.get("text", "") + line + "\n"
        if name.startswith("id of ") and value.isdigit():
            value = names.get(int(value), "another" if int(value) else "none")
        seen[name] = value
    return seen
