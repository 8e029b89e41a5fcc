"""Notices when the loss or the gradients stop being numbers, or run away. Says so once each."""

import math
import sys

from . import event_log
from .holders import place_of

# Losses of the first steps say little.
SETTLED = 30
# Weight of the newest loss in their running mean.
FRESH = 0.05
# Times the lowest mean.
RUNAWAY = 10.0


class LossWatch:
    def __init__(self):
        self._told = set()
        self._mean = self._lowest = None
        self._seen = 0
        # The last step whose loss was a number.
        self._finite = 0

    def loss(self, value, step):
        if not math.isfinite(value):
            self._tell("loss", value, step)
            return
        self._seen += 1
        self._finite = step
        self._mean = value if self._mean is None else self._mean + FRESH * (value - self._mean)
        if self._seen < SETTLED:
            return
        self._lowest = self._mean if self._lowest is None else min(self._lowest, self._mean)
        if self._lowest > 0 and self._mean > RUNAWAY * self._lowest + 1:
            self._tell("loss", self._mean, step, "diverged")

    def gradient(self, value, step):
        if not math.isfinite(value):
            self._tell("gradient", value, step)

    def _tell(self, of, value, step, first=None):
        first = first or ("nan" if math.isnan(value) else "inf")
        if (of, first) not in self._told:
            self._told.add((of, first))
            shown = value if math.isfinite(value) else None
            event_log.log_event("numbers", of=of, first=first, step=step, since=self._finite, value=shown, **place_of(sys._getframe()))
