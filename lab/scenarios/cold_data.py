"""Loads 1.2 times the memory and then uses half of it: it fits where the rest may be swapped."""

from memory import MB, available, touch, written
from trainer import STEPS_A_SECOND, Loop

PARTS = 40


def main():
    loop = Loop(base=available() // 12)
    loop.warm_up()
    loop.onset()
    part = available() * 6 // 5 * MB // PARTS
    dataset = []
    for _ in range(PARTS):
        dataset.append(written(part))
        loop.run(STEPS_A_SECOND // 2)
    for _ in range(15 * STEPS_A_SECOND):
        for hot in dataset[PARTS // 2 :]:
            touch(hot)
        loop.step()
    loop.finish()


main()
