"""Makes each epoch's batch 1.4 times larger; steps back and stays there when it is refused."""

from memory import MB, available, written
from trainer import Loop

FIRST_BATCH = 16  # MB
GROWTH = 1.4
STEPS_AN_EPOCH = 4


def epoch(loop, batch):
    for _ in range(STEPS_AN_EPOCH):
        activations = written(int(batch * MB))
        loop.step()
        del activations


def main():
    loop = Loop(base=available() // 6)
    loop.warm_up()
    loop.onset()
    batch = FIRST_BATCH
    try:
        while True:
            epoch(loop, batch)
            batch *= GROWTH
    except MemoryError as error:
        loop.caught(error)
    for _ in range(2):
        epoch(loop, batch / GROWTH**2)
    loop.finish()


main()
