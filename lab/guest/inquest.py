"""What happened, told from what was left: the trainer's log, the probe's beats, the kernel's log.

Nothing here looks at a clock or starts anything but `dmesg`; the conductor calls it when all is over.
"""

import json
import re
import signal
import subprocess

PROBE_PERIOD = 0.1
KILLED = re.compile(r"Killed process (\d+) \(([^)]*)\)")
# Of an ending by a signal the shell, and antifreeze, make 128 + its number; Popen its negative.
SIGNALS = {-number for number in signal.Signals} | {128 + number for number in signal.Signals}
KILL = {-signal.SIGKILL, 128 + signal.SIGKILL}
# antifreeze ends with this when it ended the command and starting again makes sense.
STOPPED_BY_ANTIFREEZE = 75
ASKED_TO_END = {-signal.SIGTERM, 128 + signal.SIGTERM, STOPPED_BY_ANTIFREEZE}


class TrainerLog:
    """The trainer's own account. A line that was cut short by its death is left out."""

    def __init__(self, path):
        self._path = path
        self._read = 0
        self._rest = b""
        self.entries = []

    def follow(self):
        """Takes in what was written since the last call."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                new = file.read()
        except FileNotFoundError:
            return
        self._read += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        self.entries += [json.loads(line) for line in lines]

    def first(self, what):
        """When it was first said, or None."""
        return next((entry["t"] for entry in self.entries if entry["what"] == what), None)

    def count(self, what):
        return sum(entry["what"] == what for entry in self.entries)

    def highest(self, what):
        return max((entry["n"] for entry in self.entries if entry["what"] == what), default=0)

    def saved_after_stopping(self):
        asked = self.first("stopping")
        saves = [entry["t"] for entry in self.entries if entry["what"] == "saved"]
        return asked is not None and any(t >= asked for t in saves)


def ending(log, exit_status):
    """How the trainer ended, in the words of lab/README.md. `exit_status` is None while it runs."""
    if log.count("finished"):
        return "caught and finished" if log.count("caught") else "finished"
    if exit_status is None:
        return "running"
    if log.saved_after_stopping():
        return "saved and stopped"
    if exit_status in KILL:
        return "killed"
    if log.count("stopping") or exit_status in ASKED_TO_END:
        return "stopped"
    return "killed" if exit_status in SIGNALS else "failed"


def lost_steps(log):
    """Work done since the last save; none when it finished."""
    return 0 if log.count("finished") else log.highest("step") - log.highest("saved")


def delays(path, stuck_until=None):
    """The probe's delays in seconds. Beats that were never answered, because the probe was killed
    or still stuck when it was to end, count as if they had been answered then."""
    beats = []
    try:
        with open(path) as file:
            # The last line of a probe that was killed may be cut short.
            for line in file.read().split("\n")[:-1]:
                due, delay = line.split()[:2]
                beats.append((float(due), float(delay)))
    except FileNotFoundError:
        return None
    if not beats:
        return None
    seconds = [delay for _, delay in beats]
    if stuck_until is not None:
        missed = round((stuck_until - beats[-1][0]) / PROBE_PERIOD)
        seconds += [PROBE_PERIOD * (n + 1) for n in range(missed)]
    seconds.sort()
    return {
        "worst": round(seconds[-1], 3),
        "p99": round(quantile(seconds, 0.99), 3),
        "p50": round(quantile(seconds, 0.5), 3),
        "beats": len(seconds),
    }


def quantile(ranked, share):
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))]


def kernel_kills():
    """Whom the kernel's out-of-memory killer killed, as (pid, name)."""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, errors="replace").stdout
    return [(int(pid), name) for pid, name in KILLED.findall(log)]


def bystanders_killed(bystanders, kills):
    """Names of those who died and had no part in it. `bystanders` maps a name to its process.

    Trainers are Python programs, so what the kernel killed under another name was somebody else.
    """
    ended = {name for name, process in bystanders.items() if process.poll() is not None}
    return ended | {name for _, name in kills if not name.startswith("python3")}


def first_warning(said, onset):
    """Seconds from the onset of the demand to the guard's first words about memory, or None."""
    if onset is None:
        return None
    return next((round(t - onset, 2) for t, _ in sorted(said) if t >= onset), None)


def major_faults(pid):
    """Pages that the process had to wait for a disk to give it, or None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The name may hold spaces; the fields are counted from its closing bracket.
            return int(file.read().rpartition(")")[2].split()[9])
    except OSError:
        return None
