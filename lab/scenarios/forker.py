"""Forks a child for each batch, which takes 8 MB and exits, while the parent leaks.

When either is refused memory, the parent drops most of what it kept and continues.
"""

import workers
from memory import MB, available_megabytes, written_block
from trainer import STEPS_PER_SECOND, Loop

KEPT_BYTES_PER_STEP = 15 * MB // STEPS_PER_SECOND
BATCH_BYTES = 8 * MB


def augment():
    written_block(BATCH_BYTES)


def augment_in_child():
    try:
        child = workers.start_worker(augment)
    except OSError as error:
        raise MemoryError(f"no child: {error}") from error
    workers.wait_for_worker(child)


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    kept = []
    try:
        while True:
            kept.append(written_block(KEPT_BYTES_PER_STEP))
            augment_in_child()
            loop.step()
    except MemoryError as error:
        del kept[len(kept) // 4 :]
        loop.log_caught(error)
    for _ in range(4 * STEPS_PER_SECOND):
        augment_in_child()
        loop.step()
    loop.finish()


main()
