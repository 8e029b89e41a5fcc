"""Six workers wait at a barrier and then take 130 MB each at the same instant.

No look at one process foresees it. A worker that is refused leaves; the parent goes on with the
rest.
"""

import os
import time

import workers
from memory import MB, available, touch, written
from trainer import STEPS_A_SECOND, Loop

WORKERS = 6
TAKEN = 130 * MB
WORK_SECONDS = 8


def take_when(barrier):
    os.read(barrier, 1)
    taken = written(TAKEN)
    until = time.monotonic() + WORK_SECONDS
    while time.monotonic() < until:
        touch(taken)
        time.sleep(0.1)


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    barrier, opener = os.pipe()

    def wait_and_take():
        os.close(opener)
        take_when(barrier)

    loaders = [workers.start(wait_and_take) for _ in range(WORKERS)]
    loop.run(STEPS_A_SECOND)
    loop.onset()
    os.close(opener)
    while loaders:
        loop.step()
        for loader in list(loaders):
            try:
                if not workers.look([loader]):
                    loaders.remove(loader)
            except MemoryError as error:
                loaders.remove(loader)
                loop.caught(error)
    loop.finish()


main()
