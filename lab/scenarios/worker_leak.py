"""Three loader workers keep what they loaded, 15 MB a second together.

When a worker is out of memory, the parent ends the others and loads by itself.
"""

import time

import workers
from memory import MB, available_megabytes, written_block
from trainer import STEPS_PER_SECOND, Loop

WORKERS = 3
SAMPLE_BYTES = MB
SAMPLES_PER_SECOND = 5


def load_and_keep():
    kept = []
    while True:
        kept.append(written_block(SAMPLE_BYTES))
        time.sleep(1 / SAMPLES_PER_SECOND)


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    loaders = [workers.start_worker(load_and_keep) for _ in range(WORKERS)]
    try:
        while True:
            workers.poll_workers(loaders)
            loop.step()
    except MemoryError as error:
        loop.log_caught(error)
        workers.end_workers(loaders)
    loop.run(4 * STEPS_PER_SECOND)
    loop.finish()


main()
