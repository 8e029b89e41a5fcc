"""Maps more than the memory in two buffers while that costs nothing, and fills them late.

Saves and ends when told to; if it is refused the second buffer, it does with the first.
"""

import mmap
import signal

from memory import MB, available, fill
from trainer import STEPS_A_SECOND, Loop

# Frameworks map much that they never touch, so a guard has to forgive what lies there this long.
UNTOUCHED_SECONDS = 35
FILLED_EACH_STEP = 15 * MB // STEPS_A_SECOND


def mapped(size):
    try:
        return mmap.mmap(-1, size * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from error


def fill_slowly(loop, buffer):
    view = memoryview(buffer)
    for at in range(0, len(view), FILLED_EACH_STEP):
        fill(view[at : at + FILLED_EACH_STEP])
        loop.step()


def main():
    loop = Loop(base=available() // 12)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    buffers = [mapped(available() * 6 // 10)]
    loop.run(UNTOUCHED_SECONDS * STEPS_A_SECOND)
    try:
        buffers.append(mapped(available() * 6 // 10))
    except MemoryError as error:
        loop.caught(error)
    loop.onset()
    for buffer in buffers:
        fill_slowly(loop, buffer)
    loop.finish()


main()
