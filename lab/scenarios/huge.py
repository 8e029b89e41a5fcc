"""Asks for three times the memory in one allocation and fills it, as a dataset loaded whole.

When it is refused it loads half as much, until that fits.
"""

from memory import MB, available, written
from trainer import STEPS_A_SECOND, Loop


def load(loop, size):
    while True:
        try:
            return written(size * MB)
        except MemoryError as error:
            loop.caught(error)
            size //= 2


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    dataset = load(loop, 3 * available())
    loop.run(4 * STEPS_A_SECOND)
    loop.finish()
    del dataset


main()
