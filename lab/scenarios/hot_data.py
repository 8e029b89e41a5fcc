"""Loads 1.3 times the memory and goes over all of it, again and again: what it needs next was just swapped."""

from memory import MB, available, touch, written
from trainer import STEPS_A_SECOND, Loop

PARTS = 40


def main():
    loop = Loop(base=available() // 12)
    loop.warm_up()
    loop.onset()
    part = available() * 13 // 10 * MB // PARTS
    dataset = []
    for _ in range(PARTS):
        dataset.append(written(part))
        loop.run(STEPS_A_SECOND // 4)
    for _ in range(60 * STEPS_A_SECOND):
        for hot in dataset:
            touch(hot)
        loop.step()
    loop.finish()


main()
