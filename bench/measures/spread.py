"""Medians and their confidence intervals. Machines are shared and noisy, so no mean is used."""

import math
from statistics import median


def interval(values):
    """The 95 % confidence interval of the median, from order statistics and the binomial distribution."""
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
