"""The parts of `bench/check/run`, in the order in which they run."""

from . import precision, recall, speed

PARTS = {
    "speed": speed,
    "precision": precision,
    "recall": recall,
}
