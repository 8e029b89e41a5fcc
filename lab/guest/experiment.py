"""One experiment: measures the idle machine, then runs a guarded trainer and measures again.

The order is the same for every guard, so that results can be compared. lab/README.md describes the
fields of the result.
"""

import subprocess
import time

import guards
import machine
import outcome
import users
from guarded_run import SAVE_PATH, GuardedRun

# After the boot, until the bystanders have taken their memory.
SETTLE_SECONDS = 3
IDLE_SECONDS = 10
BYSTANDERS = ("bystander-1", "bystander-2")
BYSTANDER_MB = "30"
# How antifreeze's messages about these events begin; crates/view/src/sentence.rs has the messages.
BRAKED = "slowed the run down"
PAUSED = "paused:"
RESUMED = "resumed after a pause"
MB = 1 << 20


def prepare_disk(scenario):
    """Makes the files that the scenario needs, and drops them from the page cache."""
    setup = users.start_program(
        "u", "setup", ["python3", *scenario.setup], environment={"LAB_SAVE": SAVE_PATH}
    )
    if setup.wait() != 0:
        raise RuntimeError(f"the setup ended with status {setup.returncode}")
    machine.drop_file_cache()


def run_experiment(job, scenario, guard, report):
    bystanders = {
        name: users.start_program("other", name, ["python3", "/lab/guest/bystander.py", BYSTANDER_MB])
        for name in BYSTANDERS
    }
    time.sleep(SETTLE_SECONDS)
    idle = Probe("idle", IDLE_SECONDS)
    idle.wait()
    available = machine.read_meminfo("MemAvailable")
    guard.start()
    if users.HAS_SYSTEMD and guards.other_running_guards(guard):
        raise RuntimeError(f"also running: {guards.other_running_guards(guard)}")
    probe = Probe("probe", job["seconds"] + 60)
    run = GuardedRun(job, scenario, guard, available)
    run.wait_until_end(report)

    # The probe ends first, so that it does not measure the cleanup.
    probe.end()
    exit_status, neighbour = run.exit_status(), run.neighbour_end()
    run.end()
    kills = outcome.oom_kills()
    killed = outcome.killed_bystanders(bystanders, kills) | ({"probe"} if probe.died else set())
    messages = guard.memory_messages(run.output)
    for process in bystanders.values():
        process.terminate()
    log = run.log
    return {
        "ended": outcome.describe_ending(log, exit_status),
        "exit": exit_status,
        "steps": log.highest("step"),
        "saved": log.highest("saved"),
        "lost_steps": outcome.count_lost_steps(log),
        "caught": log.count("caught"),
        "probe": probe.delays(),
        "idle": idle.delays(),
        "bystanders_killed": sorted(killed),
        "neighbour_ended": neighbour,
        "first_warning": outcome.seconds_to_first_warning(messages, run.onset()),
        "guard_major_faults": run.major_faults.since_onset(),
        "braked": count_messages(messages, BRAKED),
        "paused": count_messages(messages, PAUSED),
        "resumed": count_messages(messages, RESUMED),
        "oom_kills": [name for _, name in kills],
        "explained": guard.explained_causes(),
        "guard_said": [f"{t:.2f} {line}" for t, line in messages],
        "available": available // MB,
    }


def count_messages(messages, beginning):
    return sum(line.startswith(beginning) for _, line in messages)


class Probe:
    """The program that measures delays. `died` is true if it ended before it was asked to."""

    def __init__(self, name, seconds):
        self._out = f"{machine.WORK_FOLDER}/{name}"
        self._process = users.start_program(
            "u", name, ["/lab/probe", "--seconds", str(seconds), "--out", self._out]
        )
        self._stuck_until = None
        self.died = False

    def wait(self):
        if self._process.wait():
            raise RuntimeError(f"the probe ended with status {self._process.returncode}")

    def end(self, timeout=30):
        """If the probe does not end within `timeout`, it is stuck, and the beats that it missed count."""
        self.died = self._process.poll() is not None
        self._process.terminate()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._stuck_until = time.monotonic()
        if self.died:
            self._stuck_until = time.monotonic()

    def delays(self):
        return outcome.summarize_delays(self._out, self._stuck_until)
