"""How many faults in our own scripts are found, and whether their repaired versions have no
findings. crates/lint/tests/support/cases.rs explains the files and their marks."""

import os
import re
from collections import Counter, defaultdict
from typing import NamedTuple

from measures.bench import REPOSITORY, LeftOut
from measures.figure import Figure, at_least, exactly

from .checker import split_cells, run_check
from .corpus import files_under

TITLE = "Recall on scripts with a known fault"
SCRIPTS = os.path.join(REPOSITORY, "crates/lint/tests/scripts")
SEPARATOR = re.compile(r"\n?^# ={8} (\S+) ={8}\n", re.MULTILINE)
MARK = re.compile(r"# (expect|or): ([\w, -]+)$")


class Mark(NamedTuple):
    rule: str
    place: str


class Script(NamedTuple):
    expected: list
    # Lines that may be reported instead.
    instead: list


def measure(bench):
    folder = bench.folder()
    unpack_cases(SCRIPTS, folder)
    wrong, clean = read_scripts(folder)
    if not wrong:
        raise LeftOut("everything, because there are no scripts")
    found, troubles = run_check(bench, folder, "--preview")
    for trouble in troubles:
        yield LeftOut(trouble)
    said = group_by_file(found)
    hits, misses = score(wrong, said)
    for file, mark in misses:
        print(f"  missed: {file}:{mark.place} {mark.rule}")
    yield Figure("scripts with a fault", len(wrong), "", at_least(120))
    total = len(hits) + len(misses)
    yield Figure("faults found", 100 * len(hits) / total, "%", at_least(90), f"{len(hits)} of {total}")
    by_default, _ = score(wrong, group_by_file(run_check(bench, folder)[0]))
    yield Figure("faults found by the default rules", 100 * len(by_default) / total, "%")
    yield Figure(
        "findings that scripts with a fault do not have",
        len(print_findings("not a fault", unexpected_findings(wrong, said))), "", exactly(0),
    )
    yield Figure(
        "findings in repaired and innocent scripts",
        len(print_findings("false", [f for f in found if f.file in clean])), "", exactly(0),
        f"{len(clean)} scripts",
    )
    for rule, (seen, all_of_it) in score_per_rule(hits, misses).items():
        yield Figure(rule, 100 * seen / all_of_it, "%", None, f"{seen} of {all_of_it}")


def unpack_cases(packed, folder):
    """Writes each case under `packed` to a file of its own: `<rule>/<story>.wrong.py`."""
    for file in files_under(packed):
        name, extension = os.path.splitext(file)
        with open(os.path.join(packed, file)) as source:
            content = source.read()
        if extension == ".ipynb":
            write_file(os.path.join(folder, file), content)
        elif extension == ".py":
            for story, script in split_cases(content):
                write_file(os.path.join(folder, name, story), script)


def split_cases(content):
    """Returns the name and the text of each case in a file."""
    _, *pieces = SEPARATOR.split(content)
    return list(zip(pieces[::2], pieces[1::2]))


def write_file(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)


def read_scripts(folder):
    """Returns the faulty scripts by file with their marks, and the names of the others."""
    wrong, clean = {}, set()
    for file in files_under(folder):
        if not file.endswith((".py", ".ipynb")):
            continue
        if ".wrong." not in file:
            clean.add(file)
            continue
        with open(os.path.join(folder, file), "rb") as source:
            wrong[file] = Script(*parse_marks(split_cells(file, source.read())))
    return wrong, clean


def parse_marks(lines_of_cells):
    """Returns the expected marks and those that may be reported instead."""
    of_kind = {"expect": [], "or": []}
    for cell, lines in lines_of_cells.items():
        for number, line in enumerate(lines, 1):
            mark = MARK.search(line)
            for rule in mark.group(2).split(",") if mark else []:
                place = f"{cell}:{number}" if cell else f"{number}"
                of_kind[mark.group(1)].append(Mark(rule.strip(), place))
    return of_kind["expect"], of_kind["or"]


def group_by_file(found):
    said = defaultdict(list)
    for finding in found:
        said[finding.file].append(finding)
    return said


def score(wrong, said):
    """Returns (file, mark) of the faults that are found and of those that are missed."""
    hits, misses = [], []
    for file, script in wrong.items():
        seen = {Mark(finding.rule, finding.place) for finding in said.get(file, [])}
        spare = [mark for mark in script.instead if mark in seen]
        for mark in script.expected:
            other = next((m for m in spare if m.rule == mark.rule), None)
            if mark in seen:
                hits.append((file, mark))
            elif other:
                spare.remove(other)
                hits.append((file, mark))
            else:
                misses.append((file, mark))
    return hits, misses


def unexpected_findings(wrong, said):
    return [
        finding
        for file, script in wrong.items()
        for finding in said.get(file, [])
        if Mark(finding.rule, finding.place) not in script.expected + script.instead
    ]


def print_findings(what, found):
    for finding in found:
        print(f"  {what}: {finding.file}:{finding.place} {finding.rule}: {finding.message}")
    return found


def score_per_rule(hits, misses):
    """Returns the found and the expected number of faults by rule."""
    found = Counter(mark.rule for _, mark in hits)
    expected = found + Counter(mark.rule for _, mark in misses)
    return {rule: (found[rule], expected[rule]) for rule in sorted(expected)}
