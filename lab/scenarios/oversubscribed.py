"""Sixty-four busy processes for 20 seconds, like eight workers with eight threads each."""

import time

import workers
from memory import available_megabytes
from trainer import Loop

BUSY_PROCESSES = 64
BUSY_SECONDS = 20


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    until = time.monotonic() + BUSY_SECONDS

    def compute():
        while time.monotonic() < until:
            sum(i * i for i in range(10_000))

    busy = [workers.start_worker(compute) for _ in range(BUSY_PROCESSES)]
    while busy:
        loop.step()
        busy = workers.poll_workers(busy)
    loop.finish()


main()
