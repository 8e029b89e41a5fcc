"""Allocates three times the memory at once and fills it, as a script that loads a whole dataset.

When it is refused, it loads half as much, until that fits.
"""

from memory import MB, available_megabytes, written_block
from trainer import STEPS_PER_SECOND, Loop


def load(loop, size):
    while True:
        try:
            return written_block(size * MB)
        except MemoryError as error:
            loop.log_caught(error)
            size //= 2


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    dataset = load(loop, 3 * available_megabytes())
    loop.run(4 * STEPS_PER_SECOND)
    loop.finish()
    del dataset


main()
