"""Loads 1.2 times the memory and then uses half of it: it fits if the rest may be swapped."""

from memory import MB, available_megabytes, touch_pages, written_block
from trainer import STEPS_PER_SECOND, Loop

PARTS = 40


def main():
    loop = Loop(base=available_megabytes() // 12)
    loop.warm_up()
    loop.log_onset()
    part = available_megabytes() * 6 // 5 * MB // PARTS
    dataset = []
    for _ in range(PARTS):
        dataset.append(written_block(part))
        loop.run(STEPS_PER_SECOND // 2)
    for _ in range(15 * STEPS_PER_SECOND):
        for hot in dataset[PARTS // 2 :]:
            touch_pages(hot)
        loop.step()
    loop.finish()


main()
