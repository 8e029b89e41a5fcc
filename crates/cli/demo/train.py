"""A small network learns the sine, and leaks: every step it keeps its activations.

Python's standard library only. Without antifreeze a script like this fills the memory
until the machine freezes; under a budget it meets a wall, catches the error at the line
that caused it, and goes on with a smaller batch.
"""

import array
import collections
import math
import random
import sys
import time
import traceback

STEPS = 100
HIDDEN = 8


def forward(weights, x):
    hidden = [math.tanh(w * x + b) for w, b in zip(weights["in"], weights["bias"])]
    return hidden, sum(o * h for o, h in zip(weights["out"], hidden))


def train_step(weights, samples, rate=0.05):
    """One step of gradient descent; returns the mean loss."""
    loss = 0.0
    for _ in range(samples):
        x = random.uniform(-3.0, 3.0)
        hidden, y = forward(weights, x)
        error = y - math.sin(x)
        loss += error * error
        for i, h in enumerate(hidden):
            back = error * weights["out"][i] * (1.0 - h * h)
            weights["out"][i] -= rate * error * h
            weights["in"][i] -= rate * back * x
            weights["bias"][i] -= rate * back
    return loss / samples


def main():
    random.seed(1)
    weights = {name: [random.uniform(-1, 1) for _ in range(HIDDEN)] for name in ("in", "bias", "out")}
    batch = 1_000_000
    history = []
    for step in range(1, STEPS + 1):
        loss = train_step(weights, 500)
        try:
            activations = array.array("d", bytes(8 * batch))
            history.append(activations)
        except MemoryError:
            print("\ncaught at step %d:" % step)
            traceback.print_exc(file=sys.stdout)
            history = collections.deque(maxlen=4)
            batch //= 4
            print("going on with a batch of %d, keeping the last 4 steps only\n" % batch)
        if step % 10 == 0:
            held = sum(len(kept) * 8 for kept in history) / 1e6
            print("step %3d  loss %.3f  history holds %3.0f MB" % (step, loss, held), flush=True)
        time.sleep(0.06)
    print("done: loss %.3f" % loss)


main()
