"""The lab's section of bench/RESULTS.md: what was measured, cell by cell, and the targets."""

import math
import os
import sys
from statistics import median

from catalogue import SCENARIOS
from guards import GUARDS

from . import REPOSITORY, ledger, targets

sys.path.insert(0, os.path.join(REPOSITORY, "bench"))
from measures.results import conditions, write

BLANK = ""


class Section:
    """In the shape that `write` puts between its marks."""

    mark = "lab"

    def __init__(self, found):
        self._found = found
        self._stormy = [s for s in SCENARIOS.values() if s.ends == "normal" and self._tried(s.name)]

    def _tried(self, scenario):
        return [guard for guard in GUARDS if ledger.of_cell(self._found, scenario, guard)]

    def text(self):
        load = median(result["host_load"] for result in self._found)
        parts = [
            "## Freezes",
            f"`lab/matrix --write`. {conditions(load)} Guests under qemu without KVM; medians of the "
            "runs, each on a fresh machine.",
            "Worst delay of the interactive probe in seconds, in brief (of the other guards the best):",
            self._brief(),
            "The same under every guard:", self._grid(_worst),
            "Its p99, and how many times that of the idle machine:", self._grid(_p99),
            "How the trainer ended, and in how many runs:", self._grid(_ended),
            "Bystanders killed, in all runs:", self._grid(_bystanders),
            "Steps of work lost:", self._grid(_lost),
            "What antifreeze owes:", self._judgements(),
        ]
        return "\n\n".join(parts)

    def _grid(self, cell):
        lines = ["| | " + " | ".join(GUARDS) + " |", "|---|" + "--:|" * len(GUARDS)]
        for scenario in self._stormy:
            cells = [
                cell(ledger.latest(self._found, scenario.name, guard))
                if guard in self._tried(scenario.name) else BLANK
                for guard in GUARDS
            ]
            lines.append(f"| {scenario.name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _brief(self):
        lines = ["| | none | best other guard | antifreeze |", "|---|--:|--:|--:|"]
        for scenario in self._stormy:
            tried = {
                guard: ledger.latest(self._found, scenario.name, guard)
                for guard in self._tried(scenario.name)
            }
            others = [guard for guard in tried if guard not in ("none", "antifreeze")]
            best = min(others, key=lambda guard: _stall(tried[guard]), default=None)
            cells = [
                _worst(tried["none"]) if "none" in tried else BLANK,
                f"{_worst(tried[best])} ({best})" if best else BLANK,
                _worst(tried["antifreeze"]) if "antifreeze" in tried else BLANK,
            ]
            lines.append(f"| {scenario.name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _judgements(self):
        lines = ["| scenario | target | found | |", "|---|---|--:|---|"]
        for judgement in judgements(self._found):
            verdict = "met" if judgement.is_met else "MISSED"
            lines.append(f"| {judgement.scenario} | {judgement.what} | {judgement.found} | {verdict} |")
        return "\n".join(lines)


def judgements(found):
    for scenario in SCENARIOS.values():
        if ledger.of_cell(found, scenario.name, "antifreeze"):
            yield from targets.judge(scenario, ledger.latest(found, scenario.name, "antifreeze"))


def put_into(path, found):
    write(path, [Section(found)])


def _measured(results):
    return [result for result in results if result.get("probe")]


def _stall(results):
    """A guest that hung stalled for ever."""
    return median(result["probe"]["worst"] for result in _measured(results)) if _measured(results) else math.inf


def _worst(results):
    return f"{_stall(results):.2f}" if _measured(results) else "hung"


def _p99(results):
    if not _measured(results):
        return BLANK
    p99 = median(result["probe"]["p99"] for result in _measured(results))
    return f"{p99:.2f} ({median(targets.to_idle(result) for result in _measured(results)):.1f}×)"


def _ended(results):
    return targets.told([result["ended"] for result in results]) + f" · {len(results)}"


def _bystanders(results):
    return str(sum(len(result.get("bystanders_killed", [])) for result in results))


def _lost(results):
    known = [result["lost_steps"] for result in results if "lost_steps" in result]
    return f"{median(known):.0f}" if known else BLANK
