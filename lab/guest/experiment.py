"""One experiment: an idle floor, then a guarded trainer under a scenario, watched from outside.

The order is the same for every guard, so that cells compare. The result is flat; lab/README.md
says what its fields mean.
"""

import subprocess
import time

import guards
import inquest
import machine
import people
from storm import SAVE, Storm

# The floor is that of a machine that has booted and whose bystanders have their memory.
SETTLE_SECONDS = 3
IDLE_SECONDS = 10
BYSTANDERS = ("bystander-1", "bystander-2")
BYSTANDER_MB = "30"
MB = 1 << 20


def set_up(scenario):
    """Makes what the scenario finds on the disk, and leaves nothing of it in memory."""
    made = people.start(
        "u", "setup", ["python3", *scenario.setup], environment={"LAB_SAVE": SAVE}
    )
    if made.wait() != 0:
        raise RuntimeError(f"the setup ended with status {made.returncode}")
    machine.forget_files()


def conduct(job, scenario, guard, tell):
    bystanders = {
        name: people.start("other", name, ["python3", "/lab/guest/bystander.py", BYSTANDER_MB])
        for name in BYSTANDERS
    }
    time.sleep(SETTLE_SECONDS)
    idle = Probe("idle", IDLE_SECONDS)
    idle.wait()
    available = machine.meminfo("MemAvailable")
    guard.start()
    if people.HAS_SYSTEMD and guards.uninvited(guard):
        raise RuntimeError(f"also running: {guards.uninvited(guard)}")
    probe = Probe("probe", job["seconds"] + 60)
    storm = Storm(job, scenario, guard, available)
    storm.last_until_its_end(tell)

    # The probe ends first, so that it does not measure how the rest is cleared away.
    probe.end()
    exit_status, neighbour = storm.exit_status(), storm.neighbour_ended()
    # What is started from here on finds room again.
    storm.end()
    kills = inquest.kernel_kills()
    killed = inquest.bystanders_killed(bystanders, kills) | ({"probe"} if probe.died else set())
    said = guard.said(storm.output)
    for process in bystanders.values():
        process.terminate()
    log = storm.log
    return {
        "ended": inquest.ending(log, exit_status),
        "exit": exit_status,
        "steps": log.highest("step"),
        "saved": log.highest("saved"),
        "lost_steps": inquest.lost_steps(log),
        "caught": log.count("caught"),
        "probe": probe.delays(),
        "idle": idle.delays(),
        "bystanders_killed": sorted(killed),
        "neighbour_ended": neighbour,
        "first_warning": inquest.first_warning(said, storm.onset()),
        "guard_major_faults": storm.faults.since_onset(),
        "braked": spoken(said, "slowed the run down"),
        "paused": spoken(said, "paused:"),
        "resumed": spoken(said, "the run goes on after a pause"),
        "oom_kills": [name for _, name in kills],
        "explained": guard.explained(),
        "guard_said": [f"{t:.2f} {line}" for t, line in said],
        "available": available // MB,
    }


def spoken(said, words):
    return sum(line.startswith(words) for _, line in said)


class Probe:
    """The person's program. `died` is true when somebody else ended it."""

    def __init__(self, name, seconds):
        self._out = f"{machine.WORK}/{name}"
        self._process = people.start(
            "u", name, ["/lab/probe", "--seconds", str(seconds), "--out", self._out]
        )
        self._stuck_until = None
        self.died = False

    def wait(self):
        if self._process.wait():
            raise RuntimeError(f"the probe ended with status {self._process.returncode}")

    def end(self, patience=30):
        """A probe that cannot even end within `patience` is stuck, and its last beat counts."""
        self.died = self._process.poll() is not None
        self._process.terminate()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._stuck_until = time.monotonic()
        if self.died:
            self._stuck_until = time.monotonic()

    def delays(self):
        return inquest.delays(self._out, self._stuck_until)
