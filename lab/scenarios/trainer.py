"""The training loop that all scenarios share.

It writes to its weights in each step, saves every ten seconds, and logs what it does. lab/README.md
describes the log.
"""

import json
import os
import signal
import sys
import time

from memory import MB, touch_pages, written_block

STEP_SECONDS = 0.05
STEPS_PER_SECOND = round(1 / STEP_SECONDS)
WARM_UP_STEPS = 2 * STEPS_PER_SECOND
SAVE_EVERY_STEPS = 10 * STEPS_PER_SECOND


class Loop:
    """A loop with `base` MB of weights. On SIGTERM it ends without a save, unless `save_and_end_on` was called.

    With `saves` it saves every ten seconds and when it finishes.
    """

    def __init__(self, base, saves=True, step_seconds=STEP_SECONDS):
        self.steps = 0
        self._step_seconds = step_seconds
        self._saves = saves
        self._save_asked = False
        self._end_asked = None
        self._log = os.open(os.environ["LAB_LOG"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._log_event("started")
        signal.signal(signal.SIGTERM, self._end_now)
        self._weights = written_block(base * MB)

    def save_on(self, number):
        signal.signal(number, self._ask_save)

    def save_and_end_on(self, number):
        signal.signal(number, self._ask_end)

    def warm_up(self):
        """Makes steps for two seconds, so that the lab sees the trainer's normal memory."""
        self.run(WARM_UP_STEPS)
        self._log_event("steady")

    def log_onset(self):
        self._log_event("onset")

    def run(self, steps):
        for _ in range(steps):
            self.step()

    def step(self):
        began = time.monotonic()
        touch_pages(self._weights)
        sum(i * i for i in range(4_000))
        self.steps += 1
        self._log_event("step", n=self.steps)
        if self._end_asked is not None:
            self._log_event("stopping", signal=self._end_asked)
            self.save()
            sys.exit(128 + self._end_asked)
        if self._save_asked or (self._saves and self.steps % SAVE_EVERY_STEPS == 0):
            self._save_asked = False
            self.save()
        time.sleep(max(0.0, began + self._step_seconds - time.monotonic()))

    def save(self):
        """Replaces the save atomically."""
        path = os.environ["LAB_SAVE"]
        with open(path + ".new", "w") as file:
            file.write(str(self.steps))
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".new", path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        self._log_event("saved", n=self.steps)

    def log_caught(self, error):
        self._log_event("caught", n=self.steps, error=repr(error))

    def finish(self):
        if self._saves:
            self.save()
        self._log_event("finished")

    def _log_event(self, what, **more):
        line = json.dumps({"t": round(time.monotonic(), 4), "what": what, **more})
        os.write(self._log, line.encode() + b"\n")

    # A save in the middle of a step would contain half of it, so handlers only set a flag.
    def _ask_save(self, _number, _frame):
        self._save_asked = True

    def _ask_end(self, number, _frame):
        self._end_asked = number

    def _end_now(self, number, _frame):
        self._log_event("stopping", signal=number)
        sys.exit(128 + number)
