"""Reads a mapped file of twice the memory at random positions, for 30 seconds.

`page_cache.py make` makes the file, next to the checkpoint.
"""

import mmap
import os
import random
import sys
import time

from memory import MB, PAGE, available_megabytes, random_window
from trainer import Loop

READ_SECONDS = 30
PAGES_PER_STEP = 200


def make_dataset(path, megabytes):
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(random_window(MB))
        file.flush()
        os.fsync(file.fileno())


def main():
    path = os.path.join(os.path.dirname(os.environ["LAB_SAVE"]), "dataset")
    if sys.argv[1:] == ["make"]:
        make_dataset(path, 2 * available_megabytes())
        return
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    with open(path, "rb") as file:
        dataset = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    loop.log_onset()
    until = time.monotonic() + READ_SECONDS
    while time.monotonic() < until:
        for _ in range(PAGES_PER_STEP):
            dataset[random.randrange(len(dataset) // PAGE) * PAGE]
        loop.step()
    loop.finish()


main()
