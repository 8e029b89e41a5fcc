"""TensorFlow: a loop that keeps every batch of activations.

TensorFlow's allocator aborts when memory is refused; it raises no exception. So the guard
warns, asks for a checkpoint by SIGUSR1, and asks the run to end by SIGTERM while there is
still memory.

    antifreeze run --budget 900MB --checkpoint-signal USR1 -- python tf_leak.py
"""

import os
import signal
import sys
import time

import tensorflow as tf

CHECKPOINT = "checkpoint.weights.h5"
STEPS = 300


def save(model):
    """Writes beside the old checkpoint and replaces it: there is a whole one at any moment."""
    model.save_weights("new." + CHECKPOINT)
    os.replace("new." + CHECKPOINT, CHECKPOINT)
    print("saved", CHECKPOINT, flush=True)


def main():
    asked = set()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, lambda number, frame: asked.add(number))
    model = tf.keras.Sequential(
        [tf.keras.Input((256,)), tf.keras.layers.Dense(1024, "relu"), tf.keras.layers.Dense(1)]
    )
    features = tf.keras.Model(model.inputs, model.layers[0].output)
    history = []
    for step in range(1, STEPS + 1):
        history.append(features(tf.random.normal((1024, 256))))
        time.sleep(0.1)
        if step % 10 == 0:
            print(f"step {step}: {len(history) * 4} MB of activations kept", flush=True)
        if signal.SIGUSR1 in asked:
            asked.discard(signal.SIGUSR1)
            save(model)
        if signal.SIGTERM in asked:
            print(f"asked to end at step {step}: leaving in good order", flush=True)
            sys.exit(0)
    print("done")


if __name__ == "__main__":
    main()
