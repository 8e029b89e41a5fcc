"""The guards that the lab compares: how each is started, and what it says and costs.

Those that are services run as Debian ships them; those that stand in front of a command are given
80 % of the memory that is available, which is what people who set them by hand take.
"""

import json
import os
import re
import subprocess

import people

SHARE = 0.8
MB = 1 << 20


class Unguarded:
    """Nothing stands between the trainer and the machine."""

    needs_systemd = False

    def start(self):
        """Done once, before the trainer."""

    def command(self, trainer, scenario, available):
        """What the person types; `available` is in bytes."""
        return list(trainer)

    def properties(self, available):
        """What the person asks of systemd for the command."""
        return []

    def processes(self):
        return []

    def explained(self):
        """What it says the cause was, and how sure it is of it."""
        return None

    def said(self, output):
        """What it said about memory, as (time, line); `output` is that of the command."""
        return []


class Ulimit(Unguarded):
    def command(self, trainer, scenario, available):
        limit = int(available * SHARE) // 1024
        return ["sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh", *trainer]


class MemoryMax(Unguarded):
    needs_systemd = True

    def properties(self, available):
        return [f"MemoryMax={int(available * SHARE)}", "MemorySwapMax=0"]


class Service(Unguarded):
    """A guard of the whole machine. `speaks_of_memory` tells its words from its chatter."""

    needs_systemd = True

    def __init__(self, unit, speaks_of_memory):
        self._unit = unit
        self._speaks_of_memory = re.compile(speaks_of_memory)

    def start(self):
        subprocess.run(["systemctl", "--quiet", "unmask", self._unit], check=True)
        subprocess.run(["systemctl", "start", self._unit], check=True)

    def processes(self):
        """None while it does not run."""
        shown = subprocess.run(
            ["systemctl", "show", "--value", "-p", "MainPID", self._unit],
            capture_output=True, text=True, check=True,
        )
        return [pid for pid in (int(shown.stdout),) if pid]

    def said(self, output):
        journal = subprocess.run(
            # What the guard itself wrote; `-u` would add what systemd says of it.
            ["journalctl", "-b", f"_SYSTEMD_UNIT={self._unit}", "-o", "json", "--output-fields=MESSAGE"],
            capture_output=True, text=True,
        )
        entries = [json.loads(line) for line in journal.stdout.splitlines()]
        return [
            (int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6, str(entry.get("MESSAGE")))
            for entry in entries
            if self._speaks_of_memory.search(str(entry.get("MESSAGE")))
        ]


class Antifreeze(Unguarded):
    VERDICT = "/run/lab/verdict.json"
    # The kernel keeps fifteen characters of a process's name.
    _GUARD = "antifreeze-guard"[:15]

    def command(self, trainer, scenario, available):
        return ["/lab/antifreeze", "run", *scenario.flags, "--json", self.VERDICT, "--", *trainer]

    def processes(self):
        # What the guard starts is called like it until it becomes the trainer.
        return [
            int(pid)
            for pid in filter(str.isdigit, os.listdir("/proc"))
            if _name(pid) == self._GUARD and _name(_parent(pid)) != self._GUARD
        ]

    def explained(self):
        return causes(self.verdict("explain"))

    def verdict(self, *arguments):
        """Of the last run; empty where there is none."""
        said = self.says(*arguments, "--json")
        return json.loads(said) if said.startswith("{") else {}

    def says(self, *arguments):
        # When a storm is over, the person's manager is ended too.
        asked = people.start(
            "u", None, ["/lab/antifreeze", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return asked.communicate()[0]

    def said(self, output):
        prefix = "antifreeze: "
        lines = [(t, line.removeprefix(prefix)) for t, line in output if line.startswith(prefix)]
        # The first line only says that it is there.
        return [(t, line) for t, line in lines if not line.startswith("guarding ")]


def causes(verdict):
    """Codes and how sure they are, the likeliest first."""
    return [[cause["code"], cause["confidence"]] for cause in verdict.get("causes", [])]


def uninvited(guard):
    """Names of guards of the whole machine that run though another one is to be measured."""
    return [
        name
        for name, other in GUARDS.items()
        if isinstance(other, Service) and other is not guard and other.processes()
    ]


def _parent(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[1]
    except OSError:
        return None


def _name(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().rstrip("\n")
    except OSError:
        return None


GUARDS = {
    "none": Unguarded(),
    "earlyoom": Service("earlyoom.service", r"low memory!|sending SIG\w+ to"),
    "nohang": Service("nohang-desktop.service", r"[Tt]hreshold|SIGTERM|SIGKILL|[Ll]ow memory|PSI"),
    "systemd-oomd": Service("systemd-oomd.service", r"^Killed "),
    "ulimit": Ulimit(),
    "systemd-run": MemoryMax(),
    "antifreeze": Antifreeze(),
}
