"""Medians, and how far they can be trusted. Machines are shared and noisy, so nothing here
is a mean."""

import math
from statistics import median


def interval(values):
    """The range that holds the true median in about 95 of 100 cases, whatever the
    distribution: the order statistics that the binomial distribution gives."""
    ranked, count = sorted(values), len(values)
    below, rank = 0.0, 0
    while rank < count // 2:
        below += math.comb(count, rank) / 2**count
        if below > 0.025:
            break
        rank += 1
    rank = max(rank - 1, 0)
    return ranked[rank], ranked[count - 1 - rank]


__all__ = ["interval", "median"]
