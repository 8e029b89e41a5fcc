"""Reads a file of twice the memory at random places through a mapping, for 30 seconds.

The file is made first, beside the save, and removed at the end.
"""

import mmap
import os
import random
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
    loop = Loop(base=available() // 6)
    path = os.path.join(os.path.dirname(os.environ["LAB_SAVE"]), "dataset")
    make_dataset(path, 2 * available())
    loop.warm_up()
    with open(path, "rb") as file:
        dataset = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    os.unlink(path)
    loop.onset()
    until = time.monotonic() + READ_SECONDS
    while time.monotonic() < until:
        for _ in range(PAGES_A_STEP):
            dataset[random.randrange(len(dataset) // PAGE) * PAGE]
        loop.step()
    loop.finish()


main()
