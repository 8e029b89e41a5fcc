"""Conducts one experiment inside the guest, from boot to power-off.

Reads /lab/job.json and reports to the host, one JSON object a line, through a port of its own: a
beat every 0.2 s, and at the end the result. What it needs during the storm stays in memory, so that
it measures the machine and not itself. The files it leaves in /run/lab go to the output disk.
"""

import ctypes
import json
import os
import subprocess
import traceback

import experiment
import machine
from catalogue import SCENARIOS
from guards import GUARDS, causes

PORT = "/dev/vport0p1"
OUTPUT_DISK = "/dev/vdd"
LOCK_WHAT_IS_TOUCHED = 1 | 2 | 4  # MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT


def main():
    port = os.open(PORT, os.O_WRONLY)

    def tell(**message):
        os.write(port, json.dumps(message).encode() + b"\n")

    try:
        outlive_the_storm()
        with open("/lab/job.json") as file:
            job = json.load(file)
        scenario = SCENARIOS[job["scenario"]]
        machine.open_to_people()
        if job["boot"] == 1 and scenario.setup:
            experiment.set_up(scenario)
        tell(ready=True)
        if job["boot"] == 1:
            machine.prepare(job["swap"], scenario.shm)
            result = experiment.conduct(job, scenario, GUARDS[job["guard"]], tell)
        else:
            result = look_back()
        hand_over_files()
        tell(result=result)
    except Exception:
        traceback.print_exc()
        tell(failed=traceback.format_exc())


def outlive_the_storm():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(LOCK_WHAT_IS_TOUCHED):
        raise OSError(ctypes.get_errno(), "mlockall")
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")


def look_back():
    """After the machine died under a run: what antifreeze tells its user about it."""
    antifreeze = GUARDS["antifreeze"]
    listed, explained = antifreeze.verdict("runs", "show"), antifreeze.verdict("explain")
    kinds = {verdict.get("end", {}).get("kind") for verdict in (listed, explained)}
    return {
        "died_said": kinds == {"machine-died"},
        "last_sample": listed.get("end", {}).get("at"),
        "explained": causes(explained),
        "show": antifreeze.says("runs", "show"),
        "explain": antifreeze.says("explain"),
    }


def hand_over_files():
    """To the output disk, as tar: what the experiment left, and antifreeze's record of the run."""
    folders = ["run/lab"]
    if os.path.isdir("/home/u/.local/state/antifreeze"):
        folders.append("home/u/.local/state/antifreeze")
    with open(OUTPUT_DISK, "wb") as disk:
        subprocess.run(["tar", "c", "-C", "/", *folders], stdout=disk, check=True)
        os.fsync(disk.fileno())


if __name__ == "__main__":
    main()
