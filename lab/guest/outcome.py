"""Computes the result of a run from the trainer's log, the probe's beats and the kernel's log.

It is used after the run. Nothing here reads a clock or starts a program other than `dmesg`.
"""

import json
import re
import signal
import subprocess

PROBE_PERIOD_SECONDS = 0.1
OOM_KILL = re.compile(r"Killed process (\d+) \(([^)]*)\)")
# A signal is 128 + its number as exit status of a shell or antifreeze, and negative in Popen.
SIGNAL_STATUSES = {-number for number in signal.Signals} | {128 + number for number in signal.Signals}
SIGKILL_STATUSES = {-signal.SIGKILL, 128 + signal.SIGKILL}
# antifreeze stopped the command, and it makes sense to start it again.
STOPPED_BY_ANTIFREEZE = 75
SIGTERM_STATUSES = {-signal.SIGTERM, 128 + signal.SIGTERM, STOPPED_BY_ANTIFREEZE}


class TrainerLog:
    """The trainer's log. A last line that is incomplete is left out."""

    def __init__(self, path):
        self._path = path
        self._read = 0
        self._rest = b""
        self.entries = []

    def read_new(self):
        """Reads what was written since the last call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return
        self._read += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        self.entries += [json.loads(line) for line in lines]

    def first_time(self, what):
        """The time of the first such entry, or None."""
        return next((entry["t"] for entry in self.entries if entry["what"] == what), None)

    def count(self, what):
        return sum(entry["what"] == what for entry in self.entries)

    def highest(self, what):
        return max((entry["n"] for entry in self.entries if entry["what"] == what), default=0)

    def saved_after_stopping(self):
        asked = self.first_time("stopping")
        saves = [entry["t"] for entry in self.entries if entry["what"] == "saved"]
        return asked is not None and any(t >= asked for t in saves)


def describe_ending(log, exit_status):
    """How the trainer ended (`ended` in lab/README.md). `exit_status` is None while it runs."""
    if log.count("finished"):
        return "caught and finished" if log.count("caught") else "finished"
    if exit_status is None:
        return "running"
    if log.saved_after_stopping():
        return "saved and stopped"
    if exit_status in SIGKILL_STATUSES:
        return "killed"
    if log.count("stopping") or exit_status in SIGTERM_STATUSES:
        return "stopped"
    return "killed" if exit_status in SIGNAL_STATUSES else "failed"


def count_lost_steps(log):
    """Steps since the last save; 0 if the trainer finished."""
    return 0 if log.count("finished") else log.highest("step") - log.highest("saved")


def summarize_delays(path, stuck_until=None):
    """The probe's delays in seconds, or None if there are none. If the probe was killed or got stuck,
    the beats that it missed end at `stuck_until`."""
    beats = []
    try:
        with open(path) as file:
            # The last line of a probe that was killed may be incomplete.
            for line in file.read().split("\n")[:-1]:
                due, delay = line.split()[:2]
                beats.append((float(due), float(delay)))
    except FileNotFoundError:
        return None
    if not beats:
        return None
    seconds = [delay for _, delay in beats]
    if stuck_until is not None:
        missed = round((stuck_until - beats[-1][0]) / PROBE_PERIOD_SECONDS)
        seconds += [PROBE_PERIOD_SECONDS * (n + 1) for n in range(missed)]
    seconds.sort()
    return {
        "worst": round(seconds[-1], 3),
        "p99": round(quantile(seconds, 0.99), 3),
        "p50": round(quantile(seconds, 0.5), 3),
        "beats": len(seconds),
    }


def quantile(ranked, share):
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


def oom_kills():
    """The processes that the kernel's OOM killer killed, as (pid, name)."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [(int(pid), name) for pid, name in OOM_KILL.findall(log)]


def killed_bystanders(bystanders, kills):
    """Names of programs that were not part of the training and died. `bystanders` maps a name to its process.

    Trainers are Python programs, so a process with another name was not part of the training.
    """
    ended = {name for name, process in bystanders.items() if process.poll() is not None}
    return ended | {name for _, name in kills if not name.startswith("python3")}


def seconds_to_first_warning(messages, onset):
    """Seconds from the onset of the demand to the guard's first message about memory, or None."""
    if onset is None:
        return None
    return next((round(t - onset, 2) for t, _ in sorted(messages) if t >= onset), None)


def count_major_faults(pid):
    """How often the process waited for a page from a disk, or None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The process name may contain spaces, so fields are counted from its closing bracket.
            return int(file.read().rpartition(")")[2].split()[9])
    except OSError:
        return None
