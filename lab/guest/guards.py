"""The guards that the lab compares: how each is started, and what it prints.

Services run with Debian's settings. Guards that are put in front of a command limit it to 80 % of the
available memory, a value that people often use.
"""

import json
import os
import re
import subprocess

import users

LIMIT_SHARE = 0.8
MB = 1 << 20


class Unguarded:
    """No guard, and the interface of the others."""

    needs_systemd = False

    def start(self):
        """Starts the guard, before the trainer starts."""

    def command(self, trainer, scenario, available):
        """The command as the user types it; `available` is in bytes."""
        return list(trainer)

    def properties(self, available):
        """systemd properties for the command."""
        return []

    def processes(self):
        """Process IDs of the guard."""
        return []

    def explained_causes(self):
        """Causes that the guard names, each with its confidence, or None."""
        return None

    def memory_messages(self, output):
        """Its messages about memory, as (time, line); `output` is that of the command."""
        return []


class Ulimit(Unguarded):
    def command(self, trainer, scenario, available):
        limit = int(available * LIMIT_SHARE) // 1024
        return ["sh", "-c", f'ulimit -v {limit}; exec "$@"', "sh", *trainer]


class MemoryMax(Unguarded):
    needs_systemd = True

    def properties(self, available):
        return [f"MemoryMax={int(available * LIMIT_SHARE)}", "MemorySwapMax=0"]


class Service(Unguarded):
    """A guard of the whole machine. `memory_pattern` matches its messages about memory."""

    needs_systemd = True

    def __init__(self, unit, memory_pattern):
        self._unit = unit
        self._memory_pattern = re.compile(memory_pattern)

    def start(self):
        subprocess.run(["systemctl", "--quiet", "unmask", self._unit], check=True)
        subprocess.run(["systemctl", "start", self._unit], check=True)

    def processes(self):
        shown = subprocess.run(
            ["systemctl", "show", "--value", "-p", "MainPID", self._unit],
            capture_output=True, text=True, check=True,
        )
        return [pid for pid in (int(shown.stdout),) if pid]

    def memory_messages(self, output):
        journal = subprocess.run(
            # Only messages of the guard itself; `-u` would add those of systemd about it.
            ["journalctl", "-b", f"_SYSTEMD_UNIT={self._unit}", "-o", "json", "--output-fields=MESSAGE"],
            capture_output=True, text=True,
        )
        entries = [json.loads(line) for line in journal.stdout.splitlines()]
        return [
            (int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6, str(entry.get("MESSAGE")))
            for entry in entries
            if self._memory_pattern.search(str(entry.get("MESSAGE")))
        ]


class Antifreeze(Unguarded):
    VERDICT_PATH = "/run/lab/verdict.json"
    # The kernel keeps 15 characters of a process name.
    _GUARD_NAME = "antifreeze-guard"[:15]

    def command(self, trainer, scenario, available):
        return ["/lab/antifreeze", "run", *scenario.flags, "--json", self.VERDICT_PATH, "--", *trainer]

    def processes(self):
        # A child of the guard has the guard's name until it executes the trainer.
        return [
            int(pid)
            for pid in filter(str.isdigit, os.listdir("/proc"))
            if _process_name(pid) == self._GUARD_NAME and _process_name(_parent_pid(pid)) != self._GUARD_NAME
        ]

    def explained_causes(self):
        return codes_and_confidences(self.verdict("explain"))

    def verdict(self, *arguments):
        """The verdict of the last run; empty if there is none."""
        output = self.output_of(*arguments, "--json")
        return json.loads(output) if output.startswith("{") else {}

    def output_of(self, *arguments):
        # Without a scope: the user's manager is ended together with the run.
        process = users.start_program(
            "u", None, ["/lab/antifreeze", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        return process.communicate()[0]

    def memory_messages(self, output):
        prefix = "antifreeze: "
        lines = [(t, line.removeprefix(prefix)) for t, line in output if line.startswith(prefix)]
        # The opening line is not about memory.
        return [(t, line) for t, line in lines if not line.startswith("guarding ")]


def codes_and_confidences(verdict):
    """The causes of a verdict, most likely first."""
    return [[cause["code"], cause["confidence"]] for cause in verdict.get("causes", [])]


def other_running_guards(guard):
    """Names of services that run although another guard is to be measured."""
    return [
        name
        for name, other in GUARDS.items()
        if isinstance(other, Service) and other is not guard and other.processes()
    ]


def _parent_pid(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[1]
    except OSError:
        return None


def _process_name(pid):
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
