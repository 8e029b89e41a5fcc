"""Keeps 40 MB more each second, as a list of losses with their graphs does.

When it is refused memory it drops most of what it kept and goes on with a bounded cache.
"""

from memory import MB, available, written
from trainer import STEPS_A_SECOND, Loop

# Fast enough that swap is full as well within the time of a run: that is when a machine freezes,
# not while it swaps out what nobody asks for.
KEPT_EACH_STEP = 40 * MB // STEPS_A_SECOND


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
