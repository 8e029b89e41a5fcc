"""The table of programs and situations that must behave as without antifreeze, by kind."""

from typing import List

from ..entry import Entry
from . import frameworks, initial_state, interactive, memory, output, pythons, shells, signals, tools
from .interpreter import PYTHON

__all__ = ["ENTRIES", "PYTHON"]

ENTRIES: List[Entry] = [
    *initial_state.ENTRIES,
    *shells.ENTRIES,
    *output.ENTRIES,
    *signals.ENTRIES,
    *interactive.ENTRIES,
    *tools.ENTRIES,
    *memory.ENTRIES,
    *pythons.ENTRIES,
    *frameworks.ENTRIES,
]
