"""Where the disks of a guest lie while it runs."""

import os
import shutil
import tempfile

# Twice what the largest guest takes, with its disks.
PLENTY = 8 << 30
IN_MEMORY = "/dev/shm"


def folder():
    """A temporary folder, in memory where there is plenty of it: what the host's disk has to do
    besides would else be a stall of the guest."""
    place = IN_MEMORY if _has_plenty() else None
    return tempfile.TemporaryDirectory(prefix="antifreeze-lab-", dir=place)


def _has_plenty():
    return (
        os.path.isdir(IN_MEMORY)
        and shutil.disk_usage(IN_MEMORY).free > PLENTY
        and _available() > PLENTY
    )


def _available():
    with open("/proc/meminfo") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields.get("MemAvailable", "0 kB").split()[0]) * 1024
