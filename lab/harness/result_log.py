"""bench/lab.jsonl: every result of the matrix, one a line, so that a matrix can be interrupted and continued.

A result is valid for one subject: for antifreeze one build, for other guards one image.
"""

import json
import os

from . import REPOSITORY, job

PATH = os.path.join(REPOSITORY, "bench", "lab.jsonl")


def subject_of(guard, image):
    """The build or image that a result of this guard is valid for."""
    return "antifreeze " + job.sha256(job.antifreeze_path())[:12] if guard == "antifreeze" else image.recipe


def append(result, subject):
    with open(PATH, "a") as file:
        file.write(json.dumps(result | {"tried": subject}, ensure_ascii=False) + "\n")


def read_results():
    try:
        with open(PATH) as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def results_of_cell(results, scenario, guard):
    return [r for r in results if r["scenario"] == scenario and r["guard"] == guard]


def latest_results(results, scenario, guard):
    """The results of the cell with the subject of its newest one."""
    cell = results_of_cell(results, scenario, guard)
    return [result for result in cell if result["tried"] == cell[-1]["tried"]]
