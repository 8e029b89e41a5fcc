"""A temporary folder for the disks of a guest."""

import os
import shutil
import tempfile

# Twice what the largest guest takes, with its disks.
REQUIRED_FREE_BYTES = 8 << 30
IN_MEMORY = "/dev/shm"


def make_folder():
    """In memory if there is enough, because other work of the host's disk would stall the guest."""
    place = IN_MEMORY if _has_enough_memory() else None
    return tempfile.TemporaryDirectory(prefix="antifreeze-lab-", dir=place)


def _has_enough_memory():
    return (
        os.path.isdir(IN_MEMORY)
        and shutil.disk_usage(IN_MEMORY).free > REQUIRED_FREE_BYTES
        and _available_bytes() > REQUIRED_FREE_BYTES
    )


def _available_bytes():
    with open("/proc/meminfo") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields.get("MemAvailable", "0 kB").split()[0]) * 1024
