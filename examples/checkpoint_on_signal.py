"""A trainer that leaks, and saves a checkpoint on SIGUSR1.

The guard asks for a checkpoint before memory is full, and waits for the file. The next run
starts from there.

    antifreeze run --budget 300MB --checkpoint-signal USR1 -- python checkpoint_on_signal.py
"""

import json
import os
import signal
import time

CHECKPOINT = "checkpoint.json"
STEPS = 200


def load():
    try:
        with open(CHECKPOINT) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"step": 0, "weights": [0.0] * 1000}


def save(state):
    """Writes beside the old checkpoint and replaces it: there is a whole one at any moment."""
    with open(CHECKPOINT + ".new", "w") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(CHECKPOINT + ".new", CHECKPOINT)
    print(f"saved step {state['step']}", flush=True)


def main():
    state = load()
    asked = []
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    print(f"starting at step {state['step']}", flush=True)
    history = []
    while state["step"] < STEPS:
        state["step"] += 1
        state["weights"] = [weight + 0.001 for weight in state["weights"]]
        history.append(bytearray(4 << 20))
        time.sleep(0.1)
        if asked:
            asked.clear()
            save(state)
    print("done")


if __name__ == "__main__":
    main()
