"""bench/lab.jsonl: every result the matrix ever had, one a line, so that it can be run in sittings.

A result counts for what was tried: for antifreeze the very build, for others the image they came in.
"""

import json
import os

from . import REPOSITORY, job

PATH = os.path.join(REPOSITORY, "bench", "lab.jsonl")


def tried(guard, image):
    """What a result of this guard speaks of; another value makes it out of date."""
    return "antifreeze " + job.sha256(job.antifreeze())[:12] if guard == "antifreeze" else image.recipe


def append(result, tried_one):
    with open(PATH, "a") as file:
        file.write(json.dumps(result | {"tried": tried_one}, ensure_ascii=False) + "\n")


def results():
    try:
        with open(PATH) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def of_cell(found, scenario, guard):
    return [r for r in found if r["scenario"] == scenario and r["guard"] == guard]


def latest(found, scenario, guard):
    """The results of the cell that speak of the same thing as its newest one."""
    cell = of_cell(found, scenario, guard)
    return [result for result in cell if result["tried"] == cell[-1]["tried"]]
