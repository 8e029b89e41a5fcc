"""The parts of `bench/check`, in the order in which they run."""

from . import precision, recall, speed

PARTS = {
    "speed": speed,
    "precision": precision,
    "recall": recall,
}
