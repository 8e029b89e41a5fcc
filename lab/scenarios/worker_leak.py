"""Three loader workers keep what they loaded, 15 MB a second together.

When a worker has run out of memory the parent ends the others and loads by itself.
"""

import time

import workers
from memory import MB, available, written
from trainer import STEPS_A_SECOND, Loop

WORKERS = 3
SAMPLE = MB
SAMPLES_A_SECOND = 5


def load_and_keep():
    kept = []
    while True:
        kept.append(written(SAMPLE))
        time.sleep(1 / SAMPLES_A_SECOND)


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    loaders = [workers.start(load_and_keep) for _ in range(WORKERS)]
    try:
        while True:
            workers.look(loaders)
            loop.step()
    except MemoryError as error:
        loop.caught(error)
        workers.end(loaders)
    loop.run(4 * STEPS_A_SECOND)
    loop.finish()


main()
