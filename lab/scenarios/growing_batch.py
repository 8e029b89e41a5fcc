"""Makes each epoch's batch 1.4 times larger; returns to a smaller one and keeps it when it is refused."""

from memory import MB, available_megabytes, written_block
from trainer import Loop

FIRST_BATCH_MB = 16
GROWTH = 1.4
STEPS_PER_EPOCH = 4


def epoch(loop, batch):
    for _ in range(STEPS_PER_EPOCH):
        activations = written_block(int(batch * MB))
        loop.step()
        del activations


def main():
    loop = Loop(base=available_megabytes() // 6)
    loop.warm_up()
    loop.log_onset()
    batch = FIRST_BATCH_MB
    try:
        while True:
            epoch(loop, batch)
            batch *= GROWTH
    except MemoryError as error:
        loop.log_caught(error)
    for _ in range(2):
        epoch(loop, batch / GROWTH**2)
    loop.finish()


main()
