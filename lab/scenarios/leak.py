"""Keeps 8 MB more in each step, as a list of losses with their graphs does.

When it is refused memory it drops most of what it kept and goes on with a bounded cache.
"""

from memory import MB, available, written
from trainer import STEPS_A_SECOND, Loop

KEPT_EACH_STEP = 8 * MB


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    cache = []
    try:
        while True:
            cache.append(written(KEPT_EACH_STEP))
            loop.step()
    except MemoryError as error:
        del cache[len(cache) // 4 :]
        loop.caught(error)
    for _ in range(4 * STEPS_A_SECOND):
        cache.append(written(KEPT_EACH_STEP))
        del cache[0]
        loop.step()
    loop.finish()


main()
