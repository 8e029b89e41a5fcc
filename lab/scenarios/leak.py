"""Keeps 8 MB more in each step, like a list of losses with their graphs.

When it is refused memory, it drops most of what it kept and continues with a bounded cache.
"""

from memory import MB, available_megabytes, written_block
from trainer import STEPS_PER_SECOND, Loop

KEPT_BYTES_PER_STEP = 8 * MB


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    cache = []
    try:
        while True:
            cache.append(written_block(KEPT_BYTES_PER_STEP))
            loop.step()
    except MemoryError as error:
        del cache[len(cache) // 4 :]
        loop.log_caught(error)
    for _ in range(4 * STEPS_PER_SECOND):
        cache.append(written_block(KEPT_BYTES_PER_STEP))
        del cache[0]
        loop.step()
    loop.finish()


main()
