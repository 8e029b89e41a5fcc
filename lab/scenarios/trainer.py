"""The training loop that all scenarios share.

A loop goes over its weights in each step, saves now and then, and tells the lab in its log what
it does (see lab/README.md for the words).
"""

import json
import os
import signal
import sys
import time

from memory import MB, touch, written

STEP_SECONDS = 0.05
STEPS_A_SECOND = round(1 / STEP_SECONDS)
WARM_UP_STEPS = 2 * STEPS_A_SECOND
SAVE_EVERY_STEPS = 10 * STEPS_A_SECOND


class Loop:
    """Steps over `base` MB of weights; ends at SIGTERM, without a save unless told otherwise.

    With `saves` it saves by itself, now and then and when it finishes.
    """

    def __init__(self, base, saves=True, step_seconds=STEP_SECONDS):
        self.steps = 0
        self._step_seconds = step_seconds
        self._saves = saves
        self._save_asked = False
        self._end_asked = None
        self._log = os.open(os.environ["LAB_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._tell("started")
        signal.signal(signal.SIGTERM, self._end_now)
        self._weights = written(base * MB)

    def save_on(self, number):
        signal.signal(number, self._ask_save)

    def save_and_end_on(self, number):
        signal.signal(number, self._ask_end)

    def warm_up(self):
        """Steps until the lab has seen what the trainer takes before its scenario begins."""
        self.run(WARM_UP_STEPS)
        self._tell("steady")

    def onset(self):
        self._tell("onset")

    def run(self, steps):
        for _ in range(steps):
            self.step()

    def step(self):
        began = time.monotonic()
        touch(self._weights)
        sum(i * i for i in range(4_000))
        self.steps += 1
        self._tell("step", n=self.steps)
        if self._end_asked is not None:
            self._tell("stopping", signal=self._end_asked)
            self.save()
            sys.exit(128 + self._end_asked)
        if self._save_asked or (self._saves and self.steps % SAVE_EVERY_STEPS == 0):
            self._save_asked = False
            self.save()
        time.sleep(max(0.0, began + self._step_seconds - time.monotonic()))

    def save(self):
        """Leaves the old save or the new one on the disk, whatever happens meanwhile."""
        path = os.environ["LAB_SAVE"]
        with open(path + ".new", "w") as file:
            file.write(str(self.steps))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._tell("saved", n=self.steps)

    def caught(self, error):
        self._tell("caught", n=self.steps, error=repr(error))

    def finish(self):
        if self._saves:
            self.save()
        self._tell("finished")

    def _tell(self, what, **more):
        line = json.dumps({"t": round(time.monotonic(), 4), "what": what, **more})
        os.write(self._log, line.encode() + b"\n")

    # A save in the middle of a step would hold half of it, so a handler that saves only asks.
    def _ask_save(self, _number, _frame):
        self._save_asked = True

    def _ask_end(self, number, _frame):
        self._end_asked = number

    def _end_now(self, number, _frame):
        self._tell("stopping", signal=number)
        sys.exit(128 + number)
