"""Keeps batches in /dev/shm, 15 MB a second, as a loader does that hands them over in files.

Saves and ends when told to.
"""

import mmap
import os
import signal

from memory import MB, available, fill
from trainer import STEPS_A_SECOND, Loop

BATCH = 3 * MB
BATCHES_A_SECOND = 5


def shared_batch(number):
    """A mapped file without a name, so that nothing of it outlives the trainer."""
    path = f"/dev/shm/lab-batch-{os.getpid()}-{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    os.ftruncate(file, BATCH)
    batch = mmap.mmap(file, BATCH)
    os.close(file)
    fill(batch)
    return batch


def main():
    loop = Loop(base=available() // 6)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    loop.onset()
    kept = []
    while True:
        kept.append(shared_batch(len(kept)))
        loop.run(STEPS_A_SECOND // BATCHES_A_SECOND)


main()
