"""Differences in how the end of a run is reported, which many entries have."""

from __future__ import annotations

from ..entry import KnownDifference
from ..observe import OWN_LINES, signal_number


def died(name: str) -> KnownDifference:
    """The program is killed by a signal."""
    return KnownDifference(
        "status",
        f"exit status {128 + signal_number(name)}",
        "antifreeze exits with 128 + the signal that killed the command, as a shell does (README.md)",
    )


def message(words: str, reason: str) -> KnownDifference:
    """One line of antifreeze's, which --quiet prints too."""
    return KnownDifference(OWN_LINES, rf"antifreeze: [^\n]*{words}[^\n]*\n", reason)
