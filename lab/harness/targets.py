"""What antifreeze owes in each scenario, and whether it paid. Pure: results in, judgements out."""

from dataclasses import dataclass
from statistics import median

WORST_STALL = 0.5
P99_TO_IDLE = 2.0
LOST_STEPS = 1
LAST_SAMPLE = 1.5
# What a trainer that `can` do this must have come to.
GOOD_ENDINGS = {
    "catch": {"finished", "caught and finished", "saved and stopped"},
    "save": {"finished", "caught and finished", "saved and stopped"},
    "finish": {"finished", "caught and finished"},
}


@dataclass
class Judgement:
    scenario: str
    what: str
    found: str
    is_met: bool


def judge(scenario, results):
    """All that the scenario asks of antifreeze, from its results."""
    hung = [result for result in results if result["ended"] == "hung"]
    if hung:
        return [Judgement(scenario.name, "the guest answers", f"hung {len(hung)} times", False)]
    if scenario.ends != "normal":
        return _after_death(scenario, results)
    return [*_stall(scenario, results), *outcome(scenario, results)]


def outcome(scenario, results):
    """How trainer, neighbour and bystanders fared, however long it took."""
    return [*_others(scenario, results), *_trainer(scenario, results)]


def _stall(scenario, results):
    worst = median(result["probe"]["worst"] for result in results)
    ratio = median(to_idle(result) for result in results)
    yield Judgement(
        scenario.name, f"worst stall < {WORST_STALL} s", f"{worst:.2f} s", worst < WORST_STALL
    )
    yield Judgement(
        scenario.name, f"p99 ≤ {P99_TO_IDLE:.0f} × idle", f"{ratio:.1f} ×", ratio <= P99_TO_IDLE
    )


def _others(scenario, results):
    killed = [name for result in results for name in result["bystanders_killed"]]
    yield Judgement(scenario.name, "no bystander killed", ", ".join(killed) or "none", not killed)
    if scenario.neighbour:
        held = all(r["resumed"] >= r["paused"] and r["braked"] + r["paused"] > 0 for r in results)
        counts = "; ".join(f"{r['braked']}, {r['paused']}, {r['resumed']}" for r in results)
        yield Judgement(scenario.name, "braked or paused, and resumed", counts, held)


def _trainer(scenario, results):
    good = GOOD_ENDINGS.get(scenario.can)
    if good:
        endings = [result["ended"] for result in results]
        yield Judgement(
            scenario.name, f"it can {scenario.can}, so: " + " or ".join(sorted(good)),
            told(endings), set(endings) <= good,
        )
    if scenario.can == "save":
        lost = max(result["lost_steps"] for result in results)
        yield Judgement(scenario.name, f"lost steps ≤ {LOST_STEPS}", str(lost), lost <= LOST_STEPS)


def _after_death(scenario, results):
    said = all(result["died_said"] for result in results)
    yield Judgement(scenario.name, "says that the machine died", "yes" if said else "no", said)
    ages = [result["last_sample_before_cut"] for result in results]
    known = [age for age in ages if age is not None]
    yield Judgement(
        scenario.name, f"last sample at most {LAST_SAMPLE} s before",
        f"{max(known):.1f} s" if known else "no sample",
        len(known) == len(ages) and max(known) <= LAST_SAMPLE,
    )


def to_idle(result):
    return result["probe"]["p99"] / result["idle"]["p99"]


def told(endings):
    """Each ending once, with its number where they differ."""
    if len(set(endings)) == 1:
        return endings[0]
    return ", ".join(f"{ending} ({endings.count(ending)})" for ending in sorted(set(endings)))
