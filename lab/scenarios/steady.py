"""Uses the same memory in each step: steady.py STEPS.

It holds a third of the memory, and allocates and frees a tenth in each step. A guard has no reason to
refuse it anything.
"""

import sys

from memory import MB, available_megabytes, written_block
from trainer import Loop


def main():
    loop = Loop(base=available_megabytes() * 7 // 20)
    loop.warm_up()
    for _ in range(int(sys.argv[1])):
        activations = written_block(available_megabytes() * MB // 10)
        loop.step()
        del activations
    loop.finish()


main()
