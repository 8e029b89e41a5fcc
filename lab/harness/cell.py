"""One cell of the matrix: a scenario under a guard, in a fresh guest."""

import datetime
import os
import time
from dataclasses import dataclass

from catalogue import SCENARIOS
from guards import GUARDS

from . import job
from .guest import Guest

# An emulated machine boots in 10 to 60 s, depending on what else the host does.
BOOT_SECONDS = 180
# The idle floor, the end of the probe and of the trainer, and the power-off.
AROUND_SECONDS = 120
# Well inside the run, and after the record has seen some of it.
INTO_THE_RUN = 5


class NotHere(Exception):
    """The cell asks for something that the flavour or the lab does not have."""


class Hung(Exception):
    """The guest did not report what was waited for; its console may tell why."""


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
        """Fills in what the scenario says where nothing else was asked for."""
        if self.scenario not in SCENARIOS:
            raise NotHere(f"no scenario `{self.scenario}`; there are: {' '.join(SCENARIOS)}")
        if self.guard not in GUARDS:
            raise NotHere(f"no guard `{self.guard}`; there are: {' '.join(GUARDS)}")
        scenario = SCENARIOS[self.scenario]
        self.flavour = self.flavour or scenario.flavour or "systemd"
        self.seconds = self.seconds or scenario.seconds
        self.memory = self.memory or scenario.memory
        self.swap = self.swap or scenario.swap
        if scenario.flavour not in (None, self.flavour):
            raise NotHere(f"{self.scenario} runs in the {scenario.flavour} flavour only")
        if self.flavour == "bare" and GUARDS[self.guard].needs_systemd:
            raise NotHere(f"{self.guard} needs systemd; the bare flavour has none")

    def name(self):
        """What makes it this cell; every result begins with it."""
        return {
            "scenario": self.scenario,
            "guard": self.guard,
            "flavour": self.flavour,
            "memory": self.memory,
            "swap": self.swap,
            "slow_disks": self.slow_disks,
        }

    def run(self, image, folder, say, whole=False):
        """The result, in the words of lab/README.md. `folder` keeps the guest's files, which are
        `whole` when they are waited for."""
        result = self.name() | host_load()
        guest = Guest(folder, image)
        try:
            first = self._boot(guest, image, 1, say)
            result["boot_seconds"] = first.boot_seconds
            if SCENARIOS[self.scenario].ends == "normal":
                if whole:
                    guest.wait(AROUND_SECONDS)
                return result | first.result
            second = self._boot(guest, image, 2, say)
            return result | self._after_death(first, second)
        finally:
            guest.end()

    def hung(self):
        """The result when the guest did not report."""
        return self.name() | host_load() | {"ended": "hung"}

    def _boot(self, guest, image, number, say):
        job.write_disk(
            guest.file("job"), image, self.name() | {"seconds": self.seconds, "boot": number}
        )
        say(f"boot {number}")
        watch = Watch(guest, say)
        guest.boot(self.memory)
        watch.until(BOOT_SECONDS, lambda: watch.boot_seconds is not None)
        if self.slow_disks:
            guest.slow_disks()
        ends = SCENARIOS[self.scenario].ends if number == 1 else "normal"
        if ends == "normal":
            watch.until(self.seconds + AROUND_SECONDS, lambda: watch.result is not None)
        elif ends == "crash":
            watch.until(self.seconds + AROUND_SECONDS, lambda: not guest.is_up())
        else:
            watch.until(self.seconds + AROUND_SECONDS, lambda: watch.steady)
            watch.until(INTO_THE_RUN + 1, after(INTO_THE_RUN))
            if ends == "cut":
                guest.cut_power()
            else:
                guest.reset()
        watch.look()
        say(f"boot {number} is over: {ends}")
        return watch

    def _after_death(self, first, second):
        seen = second.result
        last_sample = seen.pop("last_sample")
        ago = None
        if last_sample is not None:
            ago = round(first.last_beat - seconds_of(last_sample), 2)
        return seen | {"ended": SCENARIOS[self.scenario].ends, "last_sample_before_cut": ago}


class Watch:
    """What one boot of a guest has reported so far."""

    def __init__(self, guest, say):
        self._guest, self._say = guest, say
        self._began = time.monotonic()
        self.boot_seconds = None
        self.last_beat = None
        self.steady = False
        self.result = None

    def look(self):
        for message in self._guest.messages():
            if "ready" in message:
                self.boot_seconds = round(time.monotonic() - self._began, 1)
                self._say(f"ready after {self.boot_seconds} s")
            elif "beat" in message:
                self.last_beat = message["beat"]
                self.steady = message["steady"]
            elif "result" in message:
                self.result = message["result"]
            elif "failed" in message:
                raise Hung("the conductor failed:\n" + message["failed"])

    def until(self, seconds, is_so):
        """Waits until it is so, and gives up when time is over or the guest is gone."""
        deadline = time.monotonic() + seconds
        while True:
            self.look()
            if is_so():
                return
            if time.monotonic() > deadline:
                raise Hung(f"nothing came within {seconds} s")
            if not self._guest.is_up():
                self.look()
                if is_so():
                    return
                raise Hung("the guest ended without a result")
            time.sleep(0.05)


def host_load():
    return {"host_load": round(os.getloadavg()[0], 2)}


def after(seconds):
    due = time.monotonic() + seconds
    return lambda: time.monotonic() >= due


def seconds_of(stamp):
    return datetime.datetime.fromisoformat(stamp).timestamp()
