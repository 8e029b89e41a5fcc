"""Compares two observations and looks up which differences are known."""

from __future__ import annotations

import difflib
import fnmatch
import re
from dataclasses import dataclass
from typing import Dict, List, Sequence, Tuple

from .entry import KnownDifference
from .observe import OWN_LINES, Observation

MISSING = "(missing)"
#: Lines of a difference that are shown.
SHOWN_LINES = 40

Differences = Dict[str, Tuple[str, str]]


@dataclass(frozen=True)
class Judgement:
    #: Aspects that differ and were not known to differ in this way.
    unknown: Differences
    #: Known differences that were not observed.
    gone: List[KnownDifference]

    def is_good(self) -> bool:
        return not self.unknown and not self.gone


def find_differences(alone: Observation, under: Observation, loud: bool) -> Differences:
    if loud:
        alone, under = without_last_newline(alone), without_last_newline(under)
    return {
        aspect: (alone.get(aspect, MISSING), under.get(aspect, MISSING))
        for aspect in [*alone, *(name for name in under if name not in alone)]
        if alone.get(aspect, MISSING) != under.get(aspect, MISSING)
    }


def without_last_newline(seen: Observation) -> Observation:
    """An observation without antifreeze's lines, and without the last line break of each stream: antifreeze ends an
    unfinished line of the command before it writes one of its own."""
    return {
        aspect: value.rstrip("\r\n") if aspect in ("stdout", "stderr") else value
        for aspect, value in seen.items()
        if aspect != OWN_LINES
    }


def judge(found: Differences, known: Sequence[KnownDifference], loud: bool) -> Judgement:
    """Every difference has to be known with its value, and every known one has to be observed."""
    applicable = [one for one in known if (loud or not one.only_loud) and not (loud and one.aspect == OWN_LINES)]
    unknown = {
        aspect: values
        for aspect, values in found.items()
        if not any(
            fnmatch.fnmatchcase(aspect, one.aspect) and re.fullmatch(one.under, values[1], re.DOTALL)
            for one in applicable
        )
    }
    gone = [one for one in applicable if not fnmatch.filter(found, one.aspect)]
    return Judgement(unknown, gone)


def render(aspect: str, values: Tuple[str, str]) -> str:
    """A difference as text: both values if they are short, else the lines that differ."""
    alone, under = values
    if "\n" not in alone.rstrip("\n") and "\n" not in under.rstrip("\n") and len(alone) + len(under) < 1000:
        return f"    {aspect}\n      alone:            {alone!r}\n      under antifreeze: {under!r}"
    lines = list(
        difflib.unified_diff(alone.splitlines(), under.splitlines(), "alone", "under antifreeze", lineterm="", n=1)
    )
    if not lines:
        lines = ["only the end of a line differs"]
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], f"… {len(lines) - SHOWN_LINES} more lines"]
    shown = "\n".join("      " + ascii(line)[1:-1][:300] for line in lines)
    return f"    {aspect}\n{shown}"
