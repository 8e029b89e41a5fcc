"""Forks a child for each batch, which takes 8 MB and is gone, while the parent leaks.

When either is refused memory, the parent drops most of what it kept and goes on.
"""

import workers
from memory import MB, available, written
from trainer import STEPS_A_SECOND, Loop

KEPT_EACH_STEP = 15 * MB // STEPS_A_SECOND
BATCH = 8 * MB


def augment():
    written(BATCH)


def augment_in_child():
    try:
        child = workers.start(augment)
    except OSError as error:
        raise MemoryError(f"no child: {error}") from error
    workers.wait(child)


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    kept = []
    try:
        while True:
            kept.append(written(KEPT_EACH_STEP))
            augment_in_child()
            loop.step()
    except MemoryError as error:
        del kept[len(kept) // 4 :]
        loop.caught(error)
    for _ in range(4 * STEPS_A_SECOND):
        augment_in_child()
        loop.step()
    loop.finish()


main()
