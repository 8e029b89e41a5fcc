"""Takes the same in each step, and never more: steady.py STEPS.

A third of the memory is held, and a tenth comes and goes with each step. There is nothing here
that deserves an error.
"""

import sys

from memory import MB, available, written
from trainer import Loop


def main():
    loop = Loop(base=available() * 7 // 20)
    loop.warm_up()
    for _ in range(int(sys.argv[1])):
        activations = written(available() * MB // 10)
        loop.step()
        del activations
    loop.finish()


main()
