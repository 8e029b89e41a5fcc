"""Runs a trainer under its guard, with the neighbour if the scenario has one, and sends beats to the
host so that it knows that the guest is alive."""

import subprocess
import threading
import time

import machine
import outcome
import users

BEAT_SECONDS = 0.2
SECONDS_AFTER_END = 3
SECONDS_BEFORE_CRASH = 5
SAVE_PATH = "/home/u/save"
MB = 1 << 20


class GuardedRun:
    """The trainer under its guard, and the neighbour if the scenario has one."""

    def __init__(self, job, scenario, guard, available):
        self._seconds = job["seconds"]
        self._scenario = scenario
        self._environment = {
            "LAB_LOG": f"{machine.WORK_FOLDER}/trainer.log",
            "LAB_SAVE": SAVE_PATH,
            "LAB_AVAILABLE": str(available // MB),
        }
        self._neighbour = None
        self._neighbour_started = None
        self.log = outcome.TrainerLog(self._environment["LAB_LOG"])
        self.major_faults = MajorFaults(guard)
        self.output = []
        self._trainer = users.start_program(
            "u", "trainer",
            guard.command(["python3", *scenario.program], scenario, available),
            properties=guard.properties(available),
            environment=self._environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        )
        # Memory is locked, so the stack is kept small.
        threading.stack_size(256 << 10)
        threading.Thread(target=self._collect_output, daemon=True).start()

    def _collect_output(self):
        with open(f"{machine.WORK_FOLDER}/output", "w", buffering=1) as file:
            for line in self._trainer.stdout:
                self.output.append((time.monotonic(), line.rstrip("\n")))
                file.write(f"{self.output[-1][0]:.2f} {line}")

    def exit_status(self):
        return self._trainer.poll()

    def wait_until_end(self, report):
        """Returns a few seconds after the trainer's end, or when time is up."""
        until = time.monotonic() + self._seconds
        ended = False
        while time.monotonic() < until:
            self.log.read_new()
            steady = self.log.first_time("steady")
            report(beat=time.time(), steady=steady is not None)
            self.major_faults.update(self.onset() is not None)
            if steady is not None:
                self._on_steady(steady)
            if not ended and self.exit_status() is not None:
                ended = True
                until = min(until, time.monotonic() + SECONDS_AFTER_END)
            time.sleep(BEAT_SECONDS)
        self.log.read_new()

    def _on_steady(self, since):
        if self._scenario.neighbour and self._neighbour is None:
            self._neighbour_started = time.monotonic()
            self._neighbour = users.start_program(
                "other", "neighbour", ["python3", *self._scenario.neighbour],
                environment=self._environment,
            )
        if self._scenario.ends == "crash" and time.monotonic() > since + SECONDS_BEFORE_CRASH:
            with open("/proc/sysrq-trigger", "w") as file:
                file.write("c")

    def onset(self):
        """When the demand of the trainer or its neighbour began to grow, or None."""
        return self._neighbour_started or self.log.first_time("onset")

    def neighbour_end(self):
        if self._neighbour is None:
            return None
        status = self._neighbour.poll()
        if status is None:
            return "running"
        return "finished" if status == 0 else "killed" if status < 0 else "failed"

    def end(self):
        """Ends the run. The trainer gets SIGTERM first, so that a guard in front of it can finish its record."""
        if self._neighbour is not None:
            self._neighbour.kill()
        self._trainer.terminate()
        try:
            self._trainer.wait(10)
        except subprocess.TimeoutExpired:
            pass
        users.kill_processes_of("u")


class MajorFaults:
    """Counts major faults of the guard's processes from the onset on."""

    def __init__(self, guard):
        self._guard = guard
        self._at_onset = {}
        self._last = {}
        self._onset_seen = False

    def update(self, has_onset):
        for pid in self._guard.processes() if not self._last else list(self._last):
            faults = outcome.count_major_faults(pid)
            if faults is not None:
                self._last[pid] = faults
        if has_onset and not self._onset_seen:
            self._onset_seen = True
            self._at_onset = dict(self._last)

    def since_onset(self):
        """None if there was no guard process or no onset."""
        if not self._at_onset:
            return None
        return sum(self._last[pid] - faults for pid, faults in self._at_onset.items())
