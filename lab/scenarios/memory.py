"""Memory whose pages are all written, all different and incompressible.

Otherwise zram would store 100 MB in ten, and a scenario would not fill the memory.
"""

import os
import random

MB = 1 << 20
PAGE = 4096

# Blocks are taken from this pool at random positions. They compress as badly as new random bytes, which
# an emulated CPU cannot make at the rate of a leak.
_POOL = memoryview(os.urandom(2 * MB))


def available_megabytes():
    """Available MB when the scenario began. All sizes are proportional to it."""
    given = os.environ.get("LAB_AVAILABLE")
    if given:
        return int(given)
    with open("/proc/meminfo") as meminfo:
        for line in meminfo:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    raise SystemExit("/proc/meminfo has no MemAvailable; set LAB_AVAILABLE to a number of MB")


def random_window(size):
    """Random bytes, at most 1 MB of them, without a copy."""
    place = random.randrange(MB)
    return _POOL[place : place + size]


def fill_randomly(buffer):
    view = memoryview(buffer)
    for at in range(0, len(view), MB):
        part = view[at : at + MB]
        part[:] = random_window(len(part))


def written_block(size):
    block = bytearray(size)
    fill_randomly(block)
    return block


def touch_pages(buffer):
    """Writes to each page once, like a step that updates all weights."""
    pages = memoryview(buffer)[::PAGE]
    pages[:] = random_window(1).tobytes() * len(pages)
