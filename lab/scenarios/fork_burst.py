"""Six workers wait at a barrier and then take 130 MB each at the same instant.

No earlier sample of a process predicts it. A worker that is refused memory exits; the parent continues
with the rest.
"""

import os
import time

import workers
from memory import MB, available_megabytes, touch_pages, written_block
from trainer import STEPS_PER_SECOND, Loop

WORKERS = 6
TAKEN_BYTES = 130 * MB
WORK_SECONDS = 8


def take_when(barrier):
    os.read(barrier, 1)
    taken = written_block(TAKEN_BYTES)
    until = time.monotonic() + WORK_SECONDS
    while time.monotonic() < until:
        touch_pages(taken)
        time.sleep(0.1)


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    barrier, opener = os.pipe()

    def wait_and_take():
        os.close(opener)
        take_when(barrier)

    loaders = [workers.start_worker(wait_and_take) for _ in range(WORKERS)]
    loop.run(STEPS_PER_SECOND)
    loop.log_onset()
    os.close(opener)
    while loaders:
        loop.step()
        for loader in list(loaders):
            try:
                if not workers.poll_workers([loader]):
                    loaders.remove(loader)
            except MemoryError as error:
                loaders.remove(loader)
                loop.log_caught(error)
    loop.finish()


main()
