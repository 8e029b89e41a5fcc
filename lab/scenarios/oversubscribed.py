"""Sixty-four busy processes for 20 seconds, as when each of eight workers starts eight threads."""

import time

import workers
from memory import available
from trainer import Loop

BUSY = 64
BUSY_SECONDS = 20


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    until = time.monotonic() + BUSY_SECONDS

    def compute():
        while time.monotonic() < until:
            sum(i * i for i in range(10_000))

    busy = [workers.start(compute) for _ in range(BUSY)]
    while busy:
        loop.step()
        busy = workers.look(busy)
    loop.finish()


main()
