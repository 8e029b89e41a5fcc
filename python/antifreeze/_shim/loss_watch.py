"""Detects when the loss or the gradients become NaN or infinite, or the loss diverges. Reports each once."""

import math
import sys

from . import event_log
from .holders import script_location

# The running mean is not judged before this many losses.
MIN_LOSSES = 30
# Weight of the newest loss in the running mean.
NEW_LOSS_WEIGHT = 0.05
# The loss diverged when its running mean is this many times its lowest value.
DIVERGED_RATIO = 10.0


class LossWatch:
    def __init__(self):
        self._reported = set()
        self._mean = self._lowest = None
        self._losses = 0
        self._last_finite_step = 0

    def check_loss(self, value, step):
        if not math.isfinite(value):
            self._report("loss", value, step)
            return
        self._losses += 1
        self._last_finite_step = step
        self._mean = value if self._mean is None else self._mean + NEW_LOSS_WEIGHT * (value - self._mean)
        if self._losses < MIN_LOSSES:
            return
        self._lowest = self._mean if self._lowest is None else min(self._lowest, self._mean)
        if self._lowest > 0 and self._mean > DIVERGED_RATIO * self._lowest + 1:
            self._report("loss", self._mean, step, "diverged")

    def check_gradient(self, value, step):
        if not math.isfinite(value):
            self._report("gradient", value, step)

    def _report(self, subject, value, step, problem=None):
        problem = problem or ("nan" if math.isnan(value) else "inf")
        if (subject, problem) not in self._reported:
            self._reported.add((subject, problem))
            event_log.log_event(
                "numbers", of=subject, first=problem, step=step, since=self._last_finite_step,
                value=value if math.isfinite(value) else None, **script_location(sys._getframe()),
            )
