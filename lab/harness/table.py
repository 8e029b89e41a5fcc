"""The lab's section of bench/RESULTS.md: the measured cells and the targets."""

import math
import os
import sys
from statistics import median

from catalogue import SCENARIOS
from guards import GUARDS

from . import REPOSITORY, result_log, targets

sys.path.insert(0, os.path.join(REPOSITORY, "bench"))
from measures.results import conditions, write

BLANK = ""


class Section:
    """The section in the form that `measures.results.write` expects."""

    mark = "lab"

    def __init__(self, results):
        self._results = results
        self._scenarios = [s for s in SCENARIOS.values() if s.ends == "normal" and self._measured_guards(s.name)]

    def _measured_guards(self, scenario):
        return [guard for guard in GUARDS if result_log.results_of_cell(self._results, scenario, guard)]

    def text(self):
        load = median(result["host_load"] for result in self._results)
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
        for scenario in self._scenarios:
            cells = [
                cell(result_log.latest_results(self._results, scenario.name, guard))
                if guard in self._measured_guards(scenario.name) else BLANK
                for guard in GUARDS
            ]
            lines.append(f"| {scenario.name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _brief(self):
        lines = ["| | none | best other guard | antifreeze |", "|---|--:|--:|--:|"]
        for scenario in self._scenarios:
            measured = {
                guard: result_log.latest_results(self._results, scenario.name, guard)
                for guard in self._measured_guards(scenario.name)
            }
            others = [guard for guard in measured if guard not in ("none", "antifreeze")]
            best = min(others, key=lambda guard: _worst_stall(measured[guard]), default=None)
            cells = [
                _worst(measured["none"]) if "none" in measured else BLANK,
                f"{_worst(measured[best])} ({best})" if best else BLANK,
                _worst(measured["antifreeze"]) if "antifreeze" in measured else BLANK,
            ]
            lines.append(f"| {scenario.name} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def _judgements(self):
        lines = ["| scenario | target | found | |", "|---|---|--:|---|"]
        for judgement in judge_all(self._results):
            verdict = "met" if judgement.is_met else "MISSED"
            lines.append(f"| {judgement.scenario} | {judgement.what} | {judgement.found} | {verdict} |")
        return "\n".join(lines)


def judge_all(results):
    for scenario in SCENARIOS.values():
        if result_log.results_of_cell(results, scenario.name, "antifreeze"):
            yield from targets.judge(scenario, result_log.latest_results(results, scenario.name, "antifreeze"))


def write_tables(path, results):
    write(path, [Section(results)])


def _with_probe(results):
    return [result for result in results if result.get("probe")]


def _worst_stall(results):
    """The median in seconds; infinite if the guest hung."""
    return median(result["probe"]["worst"] for result in _with_probe(results)) if _with_probe(results) else math.inf


def _worst(results):
    return f"{_worst_stall(results):.2f}" if _with_probe(results) else "hung"


def _p99(results):
    if not _with_probe(results):
        return BLANK
    p99 = median(result["probe"]["p99"] for result in _with_probe(results))
    return f"{p99:.2f} ({median(targets.p99_to_idle(result) for result in _with_probe(results)):.1f}×)"


def _ended(results):
    return targets.summarize_endings([result["ended"] for result in results]) + f" · {len(results)}"


def _bystanders(results):
    return str(sum(len(result.get("bystanders_killed", [])) for result in results))


def _lost(results):
    known = [result["lost_steps"] for result in results if "lost_steps" in result]
    return f"{median(known):.0f}" if known else BLANK
