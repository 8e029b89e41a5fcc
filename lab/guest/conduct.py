"""Runs one experiment inside the guest, from boot to power-off.

Reads /lab/job.json and reports to the host through a virtio port, one JSON object a line: a beat
every 0.2 s, and at the end the result. Its memory is locked, so that it measures the machine and not
itself. Files in /run/lab are copied to the output disk.
"""

import ctypes
import json
import os
import subprocess
import traceback

import experiment
import machine
from catalogue import SCENARIOS
from guards import GUARDS, codes_and_confidences

PORT = "/dev/vport0p1"
OUTPUT_DISK = "/dev/vdd"
MLOCKALL_FLAGS = 1 | 2 | 4  # MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT


def main():
    port = os.open(PORT, os.O_WRONLY)

    def report(**message):
        os.write(port, json.dumps(message).encode() + b"\n")

    try:
        lock_memory()
        with open("/lab/job.json") as file:
            job = json.load(file)
        scenario = SCENARIOS[job["scenario"]]
        machine.prepare_work_folder()
        if job["boot"] == 1 and scenario.setup:
            experiment.prepare_disk(scenario)
        report(ready=True)
        if job["boot"] == 1:
            machine.prepare(job["swap"], scenario.shm)
            result = experiment.run_experiment(job, scenario, GUARDS[job["guard"]], report)
        else:
            result = explain_after_reboot()
        copy_files_to_output_disk()
        report(result=result)
    except Exception:
        traceback.print_exc()
        report(failed=traceback.format_exc())


def lock_memory():
    """Also exempts this process from the OOM killer."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(MLOCKALL_FLAGS):
        raise OSError(ctypes.get_errno(), "mlockall")
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("-1000")


def explain_after_reboot():
    """What antifreeze says about the run after the machine died."""
    antifreeze = GUARDS["antifreeze"]
    listed, explained = antifreeze.verdict("runs", "show"), antifreeze.verdict("explain")
    kinds = {verdict.get("end", {}).get("kind") for verdict in (listed, explained)}
    return {
        "died_said": kinds == {"machine-died"},
        "last_sample": listed.get("end", {}).get("at"),
        "explained": codes_and_confidences(explained),
        "show": antifreeze.output_of("runs", "show"),
        "explain": antifreeze.output_of("explain"),
    }


def copy_files_to_output_disk():
    """Writes the files of the experiment and antifreeze's record as tar."""
    folders = ["run/lab"]
    if os.path.isdir("/home/u/.local/state/antifreeze"):
        folders.append("home/u/.local/state/antifreeze")
    with open(OUTPUT_DISK, "wb") as disk:
        subprocess.run(["tar", "c", "-C", "/", *folders], stdout=disk, check=True)
        os.fsync(disk.fileno())


if __name__ == "__main__":
    main()
