"""Keeps 15 MB more each second in objects of 2 kB, and catches nothing.

It saves when asked and only then: on SIGUSR1, and before it ends on SIGTERM.
"""

import signal

from memory import MB, available, window
from trainer import Loop

OBJECT = 2048
# A step of a network that is worth saving, not of a toy.
STEP_SECONDS = 0.5
OBJECTS_A_STEP = int(15 * MB * STEP_SECONDS) // OBJECT


def main():
    loop = Loop(base=available() // 6, saves=False, step_seconds=STEP_SECONDS)
    loop.save_on(signal.SIGUSR1)
    loop.save_and_end_on(signal.SIGTERM)
    loop.warm_up()
    loop.onset()
    kept = []
    while True:
        kept.extend(bytes(window(OBJECT)) for _ in range(OBJECTS_A_STEP))
        loop.step()


main()
