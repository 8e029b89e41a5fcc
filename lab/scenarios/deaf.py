"""Keeps 15 MB more each second in shared mappings, where no process limit applies.

It ignores SIGTERM and saves nothing, so a guard can only send SIGKILL.
"""

import mmap
import signal

from memory import MB, available_megabytes, fill_randomly
from trainer import STEPS_PER_SECOND, Loop

KEPT_BYTES_PER_STEP = 15 * MB // STEPS_PER_SECOND


def main():
    loop = Loop(base=available_megabytes() // 6, saves=False)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    loop.warm_up()
    loop.log_onset()
    kept = []
    while True:
        block = mmap.mmap(-1, KEPT_BYTES_PER_STEP)
        fill_randomly(block)
        kept.append(block)
        loop.step()


main()
