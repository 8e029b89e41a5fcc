"""The storm: a trainer under its guard, the neighbour where the scenario has one, and the beats that
tell the host that the guest still lives."""

import subprocess
import threading
import time

import inquest
import machine
import people

BEAT_SECONDS = 0.2
AFTER_THE_END = 3
BEFORE_A_CRASH = 5
SAVE = "/home/u/save"
MB = 1 << 20


class Storm:
    """The trainer under its guard, and the neighbour where the scenario has one."""

    def __init__(self, job, scenario, guard, available):
        self._seconds = job["seconds"]
        self._scenario = scenario
        self._environment = {
            "LAB_LOG": f"{machine.WORK}/trainer.log",
            "LAB_SAVE": SAVE,
            "LAB_AVAILABLE": str(available // MB),
        }
        self._neighbour = None
        self._neighbour_began = None
        self.log = inquest.TrainerLog(self._environment["LAB_LOG"])
        self.faults = Faults(guard)
        self.output = []
        self._trainer = people.start(
            "u", "trainer",
            guard.command(["python3", *scenario.program], scenario, available),
            properties=guard.properties(available),
            environment=self._environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        # All of a thread's stack would be locked in memory as it is touched; this is ample.
        threading.stack_size(256 << 10)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        with open(f"{machine.WORK}/output", "w", buffering=1) as file:
            for line in self._trainer.stdout:
                self.output.append((time.monotonic(), line.rstrip("\n")))
                file.write(f"{self.output[-1][0]:.2f} {line}")

    def exit_status(self):
        return self._trainer.poll()

    def last_until_its_end(self, tell):
        """Returns when the trainer has been over for a while, or when time is up."""
        until = time.monotonic() + self._seconds
        ended = False
        while time.monotonic() < until:
            self.log.follow()
            steady = self.log.first("steady")
            tell(beat=time.time(), steady=steady is not None)
            self.faults.look(self.onset() is not None)
            if steady is not None:
                self._on_steady(steady)
            if not ended and self.exit_status() is not None:
                ended = True
                until = min(until, time.monotonic() + AFTER_THE_END)
            time.sleep(BEAT_SECONDS)
        self.log.follow()

    def _on_steady(self, since):
        if self._scenario.neighbour and self._neighbour is None:
            self._neighbour_began = time.monotonic()
            self._neighbour = people.start(
                "other", "neighbour", ["python3", *self._scenario.neighbour],
                environment=self._environment,
            )
        if self._scenario.ends == "crash" and time.monotonic() > since + BEFORE_A_CRASH:
            with open("/proc/sysrq-trigger", "w") as file:
                file.write("c")

    def onset(self):
        """When demand began to grow: the trainer's, or that of its neighbour. None before."""
        return self._neighbour_began or self.log.first("onset")

    def neighbour_ended(self):
        if self._neighbour is None:
            return None
        status = self._neighbour.poll()
        if status is None:
            return "running"
        return "finished" if status == 0 else "killed" if status < 0 else "failed"

    def end(self):
        """The trainer is asked first, so that a guard in front of it can finish its record."""
        if self._neighbour is not None:
            self._neighbour.kill()
        self._trainer.terminate()
        try:
            self._trainer.wait(10)
        except subprocess.TimeoutExpired:
            pass
        people.end_all_of("u")


class Faults:
    """Major faults of the guard's processes, from the onset of the storm to their end."""

    def __init__(self, guard):
        self._guard = guard
        self._at_onset = {}
        self._last = {}
        self._onset_seen = False

    def look(self, onset):
        for pid in self._guard.processes() if not self._last else list(self._last):
            faults = inquest.major_faults(pid)
            if faults is not None:
                self._last[pid] = faults
        if onset and not self._onset_seen:
            self._onset_seen = True
            self._at_onset = dict(self._last)

    def since_onset(self):
        """None when there was no guard process, or no onset."""
        if not self._at_onset:
            return None
        return sum(self._last[pid] - faults for pid, faults in self._at_onset.items())
