"""Keeps 15 MB more each second in shared mappings, which no limit on a process refuses.

It ignores SIGTERM and saves nothing, so that all a guard has left is SIGKILL.
"""

import mmap
import signal

from memory import MB, available, fill
from trainer import STEPS_A_SECOND, Loop

KEPT_EACH_STEP = 15 * MB // STEPS_A_SECOND


def main():
    loop = Loop(base=available() // 6, saves=False)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    loop.warm_up()
    loop.onset()
    kept = []
    while True:
        block = mmap.mmap(-1, KEPT_EACH_STEP)
        fill(block)
        kept.append(block)
        loop.step()


main()
