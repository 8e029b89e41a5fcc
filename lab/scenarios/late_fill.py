"""Maps more than the memory in two buffers, which takes no memory, and fills them late.

Saves and ends when asked to. If it is refused the second buffer, it uses only the first.
"""

import mmap
import signal

from memory import MB, available_megabytes, fill_randomly
from trainer import STEPS_PER_SECOND, Loop

# Frameworks map much that they never touch, so a guard does not charge memory that is untouched for so long.
UNTOUCHED_SECONDS = 35
FILLED_BYTES_PER_STEP = 15 * MB // STEPS_PER_SECOND


def map_private(size):
    try:
        return mmap.mmap(-1, size * MB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from error


def fill_slowly(loop, buffer):
    view = memoryview(buffer)
    for at in range(0, len(view), FILLED_BYTES_PER_STEP):
        fill_randomly(view[at : at + FILLED_BYTES_PER_STEP])
        loop.step()


def main():
    loop = Loop(base=available_megabytes() // 12)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    buffers = [map_private(available_megabytes() * 6 // 10)]
    loop.run(UNTOUCHED_SECONDS * STEPS_PER_SECOND)
    try:
        buffers.append(map_private(available_megabytes() * 6 // 10))
    except MemoryError as error:
        loop.log_caught(error)
    loop.log_onset()
    for buffer in buffers:
        fill_slowly(loop, buffer)
    loop.finish()


main()
