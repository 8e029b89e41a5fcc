"""Memory that counts: every page is written, no two are alike, and none compresses.

Otherwise zram would keep a scenario's 100 MB in ten, and its storm would be none.
"""

import os
import random

MB = 1 << 20
PAGE = 4096

# Blocks are windows on this pool at random places: as hard to compress as fresh random bytes,
# which an emulated machine cannot make at the rate of a leak.
_POOL = memoryview(os.urandom(2 * MB))


def available():
    """The MB that the machine could spare when the scenario began, to which all sizes scale."""
    told = os.environ.get("LAB_AVAILABLE")
    if told:
        return int(told)
    with open("/proc/meminfo") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    raise SystemExit("/proc/meminfo has no MemAvailable; set LAB_AVAILABLE to a number of MB")


def window(size):
    """Random bytes, at most 1 MB of them, without a copy."""
    place = random.randrange(MB)
    return _POOL[place : place + size]


def fill(buffer):
    view = memoryview(buffer)
    for at in range(0, len(view), MB):
        part = view[at : at + MB]
        part[:] = window(len(part))


def written(size):
    block = bytearray(size)
    fill(block)
    return block


def touch(buffer):
    """Writes to each page once, as a step does that goes over all weights."""
    pages = memoryview(buffer)[::PAGE]
    pages[:] = window(1).tobytes() * len(pages)
