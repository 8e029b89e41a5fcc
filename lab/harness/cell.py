"""One cell of the matrix: a scenario under a guard, in a fresh guest."""

import datetime
import os
import time
from dataclasses import dataclass

from catalogue import SCENARIOS
from guards import GUARDS

from . import job
from .guest import Guest

# An emulated machine boots in 10 to 60 s, depending on the load of the host.
BOOT_TIMEOUT_SECONDS = 180
# For the idle floor, the end of probe and trainer, and the power-off.
EXTRA_SECONDS = 120
# From `steady` to the death of the machine, so that the record has samples.
DEATH_AFTER_SECONDS = 5


class InvalidCell(Exception):
    """The scenario or guard does not exist, or not in this flavour."""


class GuestHung(Exception):
    """The guest did not report in time; its console may say why."""


@dataclass
class Cell:
    guard: str
    scenario: str
    flavour: str | None = None
    seconds: int | None = None
    memory: int | None = None
    swap: str | None = None
    slow_disks: bool = True

    def __post_init__(self):
        """Takes values that were not given from the scenario."""
        if self.scenario not in SCENARIOS:
            raise InvalidCell(f"no scenario `{self.scenario}`; there are: {' '.join(SCENARIOS)}")
        if self.guard not in GUARDS:
            raise InvalidCell(f"no guard `{self.guard}`; there are: {' '.join(GUARDS)}")
        scenario = SCENARIOS[self.scenario]
        self.flavour = self.flavour or scenario.flavour or "systemd"
        self.seconds = self.seconds or scenario.seconds
        self.memory = self.memory or scenario.memory
        self.swap = self.swap or scenario.swap
        if scenario.flavour not in (None, self.flavour):
            raise InvalidCell(f"{self.scenario} runs in the {scenario.flavour} flavour only")
        if self.flavour == "bare" and GUARDS[self.guard].needs_systemd:
            raise InvalidCell(f"{self.guard} needs systemd; the bare flavour has none")

    def identity(self):
        """The fields that identify the cell; every result begins with them."""
        return {
            "scenario": self.scenario,
            "guard": self.guard,
            "flavour": self.flavour,
            "memory": self.memory,
            "swap": self.swap,
            "slow_disks": self.slow_disks,
        }

    def run(self, image, folder, log, wait_for_files=False):
        """Returns the result as lab/README.md describes it. The guest's files are in `folder`; they are complete with
        `wait_for_files`."""
        result = self.identity() | host_load()
        guest, before = Guest(folder, image), cpu_times()
        try:
            first = self._boot(guest, image, 1, log)
            result["boot_seconds"] = first.boot_seconds
            if SCENARIOS[self.scenario].ends == "normal":
                if wait_for_files:
                    guest.wait(EXTRA_SECONDS)
                return result | host_steal(before) | first.result
            second = self._boot(guest, image, 2, log)
            return result | host_steal(before) | self._after_death(first, second)
        finally:
            guest.end()

    def hung_result(self):
        """The result if the guest did not report."""
        return self.identity() | host_load() | {"ended": "hung"}

    def _boot(self, guest, image, number, log):
        job.write_disk(
            guest.file("job"), image, self.identity() | {"seconds": self.seconds, "boot": number}
        )
        log(f"boot {number}")
        watch = BootWatch(guest, log)
        guest.boot(self.memory)
        watch.wait_until(BOOT_TIMEOUT_SECONDS, lambda: watch.boot_seconds is not None)
        if self.slow_disks:
            guest.slow_disks()
        ends = SCENARIOS[self.scenario].ends if number == 1 else "normal"
        if ends == "normal":
            watch.wait_until(self.seconds + EXTRA_SECONDS, lambda: watch.result is not None)
        elif ends == "crash":
            watch.wait_until(self.seconds + EXTRA_SECONDS, lambda: not guest.is_up())
        else:
            watch.wait_until(self.seconds + EXTRA_SECONDS, lambda: watch.steady)
            watch.wait_until(DEATH_AFTER_SECONDS + 1, deadline_passed(DEATH_AFTER_SECONDS))
            if ends == "cut":
                guest.cut_power()
            else:
                guest.reset()
        watch.read_messages()
        log(f"boot {number} is over: {ends}")
        return watch

    def _after_death(self, first, second):
        result = second.result
        last_sample = result.pop("last_sample")
        age = None
        if last_sample is not None:
            age = round(first.last_beat - parse_timestamp(last_sample), 2)
        return result | {"ended": SCENARIOS[self.scenario].ends, "last_sample_before_cut": age}


class BootWatch:
    """Reads what one boot of a guest reports."""

    def __init__(self, guest, log):
        self._guest, self._log = guest, log
        self._started = time.monotonic()
        self.boot_seconds = None
        self.last_beat = None
        self.steady = False
        self.result = None

    def read_messages(self):
        for message in self._guest.messages():
            if "ready" in message:
                self.boot_seconds = round(time.monotonic() - self._started, 1)
                self._log(f"ready after {self.boot_seconds} s")
            elif "beat" in message:
                self.last_beat = message["beat"]
                self.steady = message["steady"]
            elif "result" in message:
                self.result = message["result"]
            elif "failed" in message:
                raise GuestHung("conduct.py failed:\n" + message["failed"])

    def wait_until(self, seconds, condition):
        """Waits for the condition; raises GuestHung after so many seconds, or if the guest ends."""
        deadline = time.monotonic() + seconds
        while True:
            self.read_messages()
            if condition():
                return
            if time.monotonic() > deadline:
                raise GuestHung(f"no report within {seconds} s")
            if not self._guest.is_up():
                self.read_messages()
                if condition():
                    return
                raise GuestHung("the guest ended without a result")
            time.sleep(0.05)


def host_load():
    return {"host_load": round(os.getloadavg()[0], 2)}


def cpu_times():
    """Clock ticks of all CPUs since boot, and those that the hypervisor took for others (steal)."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


def host_steal(before):
    """The share of steal since `before`."""
    (all_then, stolen_then), (all_now, stolen_now) = before, cpu_times()
    return {"host_steal": round((stolen_now - stolen_then) / max(all_now - all_then, 1), 3)}


def deadline_passed(seconds):
    """A condition that becomes true after so many seconds."""
    due = time.monotonic() + seconds
    return lambda: time.monotonic() >= due


def parse_timestamp(text):
    return datetime.datetime.fromisoformat(text).timestamp()
