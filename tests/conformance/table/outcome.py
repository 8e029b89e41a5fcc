"""Differences in how the end of a run is reported, which many entries have."""

from __future__ import annotations

from ..entry import KnownDifference
from ..observe import OWN_LINES


def message(words: str, reason: str) -> KnownDifference:
    """One line of antifreeze's, which --quiet prints too."""
    return KnownDifference(OWN_LINES, rf"antifreeze: [^\n]*{words}[^\n]*\n", reason)
