"""Loads 1.3 times the memory and uses all of it again and again: what it needs next was just swapped out."""

from memory import MB, available_megabytes, touch_pages, written_block
from trainer import STEPS_PER_SECOND, Loop

PARTS = 40


def main():
    loop = Loop(base=available_megabytes() // 12)
    loop.warm_up()
    loop.log_onset()
    part = available_megabytes() * 13 // 10 * MB // PARTS
    dataset = []
    for _ in range(PARTS):
        dataset.append(written_block(part))
        loop.run(STEPS_PER_SECOND // 4)
    for _ in range(60 * STEPS_PER_SECOND):
        for hot in dataset:
            touch_pages(hot)
        loop.step()
    loop.finish()


main()
