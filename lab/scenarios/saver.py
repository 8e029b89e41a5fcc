"""Keeps 15 MB more each second in objects of 2 kB, and catches no exception.

It saves only when asked: on SIGUSR1, and before it ends on SIGTERM.
"""

import signal

from memory import MB, available_megabytes, random_window
from trainer import Loop

OBJECT_BYTES = 2048
# A step long enough that losing it matters.
STEP_SECONDS = 0.5
OBJECTS_PER_STEP = int(15 * MB * STEP_SECONDS) // OBJECT_BYTES


def main():
    loop = Loop(base=available_megabytes() // 6, saves=False, step_seconds=STEP_SECONDS)
    loop.save_on(signal.SIGUSR1)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    loop.log_onset()
    kept = []
    while True:
        kept.extend(bytes(random_window(OBJECT_BYTES)) for _ in range(OBJECTS_PER_STEP))
        loop.step()


main()
