"""Keeps batches in /dev/shm, 15 MB a second, like a loader that passes them in files.

Saves and ends when asked to.
"""

import mmap
import os
import signal

from memory import MB, available_megabytes, fill_randomly
from trainer import STEPS_PER_SECOND, Loop

BATCH_BYTES = 3 * MB
BATCHES_PER_SECOND = 5


def make_shared_batch(number):
    """A mapped file without a name, which disappears with the trainer."""
    path = f"/dev/shm/lab-batch-{os.getpid()}-{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.unlink(path)
    os.ftruncate(file, BATCH_BYTES)
    batch = mmap.mmap(file, BATCH_BYTES)
    os.close(file)
    fill_randomly(batch)
    return batch


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    loop.log_onset()
    kept = []
    while True:
        kept.append(make_shared_batch(len(kept)))
        loop.run(STEPS_PER_SECOND // BATCHES_PER_SECOND)


main()
