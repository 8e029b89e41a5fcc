"""The targets of antifreeze in each scenario, and whether the results meet them. Pure functions."""

from dataclasses import dataclass
from statistics import median

MAX_STALL_SECONDS = 0.5
MAX_P99_TO_IDLE = 2.0
MAX_LOST_STEPS = 1
MAX_SAMPLE_AGE_SECONDS = 1.5
# Endings that meet the target, by what the trainer `can` do.
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
    """Compares the results with all targets of the scenario."""
    hung = [result for result in results if result["ended"] == "hung"]
    if hung:
        return [Judgement(scenario.name, "the guest answers", f"hung {len(hung)} times", False)]
    if scenario.ends != "normal":
        return _judge_after_death(scenario, results)
    return [*_judge_delays(scenario, results), *judge_outcome(scenario, results)]


def judge_outcome(scenario, results):
    """Compares with the targets for trainer, neighbour and bystanders; not with those for delays."""
    return [*_judge_others(scenario, results), *_judge_trainer(scenario, results)]


def _judge_delays(scenario, results):
    worst = median(result["probe"]["worst"] for result in results)
    ratio = median(p99_to_idle(result) for result in results)
    yield Judgement(
        scenario.name, f"worst stall < {MAX_STALL_SECONDS} s", f"{worst:.2f} s", worst < MAX_STALL_SECONDS
    )
    yield Judgement(
        scenario.name, f"p99 ≤ {MAX_P99_TO_IDLE:.0f} × idle", f"{ratio:.1f} ×", ratio <= MAX_P99_TO_IDLE
    )


def _judge_others(scenario, results):
    killed = [name for result in results for name in result["bystanders_killed"]]
    yield Judgement(scenario.name, "no bystander killed", ", ".join(killed) or "none", not killed)
    if scenario.neighbour:
        held = all(r["resumed"] >= r["paused"] and r["braked"] + r["paused"] > 0 for r in results)
        counts = "; ".join(f"{r['braked']}, {r['paused']}, {r['resumed']}" for r in results)
        yield Judgement(scenario.name, "braked or paused, and resumed", counts, held)


def _judge_trainer(scenario, results):
    good = GOOD_ENDINGS.get(scenario.can)
    if good:
        endings = [result["ended"] for result in results]
        yield Judgement(
            scenario.name, f"it can {scenario.can}, so: " + " or ".join(sorted(good)),
            summarize_endings(endings), set(endings) <= good,
        )
    if scenario.can == "save":
        lost = max(result["lost_steps"] for result in results)
        yield Judgement(scenario.name, f"lost steps ≤ {MAX_LOST_STEPS}", str(lost), lost <= MAX_LOST_STEPS)


def _judge_after_death(scenario, results):
    said = all(result["died_said"] for result in results)
    yield Judgement(scenario.name, "says that the machine died", "yes" if said else "no", said)
    ages = [result["last_sample_before_cut"] for result in results]
    known = [age for age in ages if age is not None]
    yield Judgement(
        scenario.name, f"last sample at most {MAX_SAMPLE_AGE_SECONDS} s before",
        f"{max(known):.1f} s" if known else "no sample",
        len(known) == len(ages) and max(known) <= MAX_SAMPLE_AGE_SECONDS,
    )


def p99_to_idle(result):
    return result["probe"]["p99"] / result["idle"]["p99"]


def summarize_endings(endings):
    """Each ending once, with its number if they differ."""
    if len(set(endings)) == 1:
        return endings[0]
    return ", ".join(f"{ending} ({endings.count(ending)})" for ending in sorted(set(endings)))
