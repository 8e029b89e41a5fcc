"""Reads a file of twice the memory at random places through a mapping, for 30 seconds.

The file lies beside the save; `page_cache.py make` makes it.
"""

import mmap
import os
import random
import sys
import time

from memory import MB, PAGE, available, window
from trainer import Loop

READ_SECONDS = 30
PAGES_A_STEP = 200


def make_dataset(path, megabytes):
    with open(path, "wb") as file:
        for _ in range(megabytes):
            file.write(window(MB))
        file.flush()
        os.fsync(file.fileno())


def main():
    path = os.path.join(os.path.dirname(os.environ["LAB_SAVE"]), "dataset")
    if sys.argv[1:] == ["make"]:
        make_dataset(path, 2 * available())
        return
    loop = Loop(base=available() // 6)
    loop.warm_up()
    with open(path, "rb") as file:
        dataset = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    loop.onset()
    until = time.monotonic() + READ_SECONDS
    while time.monotonic() < until:
        for _ in range(PAGES_A_STEP):
            dataset[random.randrange(len(dataset) // PAGE) * PAGE]
        loop.step()
    loop.finish()


main()
