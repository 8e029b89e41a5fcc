"""A healthy trainer: every step allocates memory and frees it.

Its peak is below 120 MB, so under a budget of 200 MB it finishes without any message.

    antifreeze run --budget 200MB -- python steady.py
"""

import sys
import time

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
WEIGHTS = bytes(20 << 20)


def train_step(step):
    """Activations come in pieces, the gradients go with them at the end of the step."""
    activations = [bytearray(10 << 20) for _ in range(2 + step % 5)]
    gradients = bytearray(16 << 20)
    time.sleep(0.02)
    return len(activations) + len(gradients)


def main():
    for step in range(1, STEPS + 1):
        train_step(step)
        if step % 20 == 0:
            print(f"step {step:3d}: holding {len(WEIGHTS) >> 20} MB of weights", flush=True)
    print("done")


if __name__ == "__main__":
    main()
