"""labels.toml: what a person says of each finding on real code, `right`, `wrong` or `doubtful`.

A line a finding: `"package/path rule place checksum" = "verdict: why"`. The place is the line,
or `cell:line` in a notebook; the checksum is that of the line's text, so that a label finds its
line again when lines above it come and go.
"""

import tomllib
from collections import defaultdict
from typing import NamedTuple

VERDICTS = ("right", "wrong", "doubtful")


class Key(NamedTuple):
    file: str
    rule: str
    place: str
    text: str

    def __str__(self):
        return " ".join(self)


class Label(NamedTuple):
    verdict: str
    why: str


def key_of(finding):
    return Key(finding.file, finding.rule, finding.place, finding.text)


def read(path):
    with open(path, "rb") as file:
        return {parsed_key(k): parsed_label(k, v) for k, v in tomllib.load(file).items()}


def parsed_key(text):
    # Paths may have spaces, the rest has none.
    parts = text.rsplit(" ", 3)
    if len(parts) != 4:
        raise ValueError(f"labels.toml: `{text}` is not `path rule place checksum`")
    return Key(*parts)


def parsed_label(key, text):
    verdict, _, why = text.partition(":")
    if verdict not in VERDICTS or not why.strip():
        raise ValueError(f"labels.toml: {key}: `{text}` is not `verdict: why`")
    return Label(verdict, why.strip())


def line(key, verdict="", why=""):
    """As it stands in labels.toml."""
    return f'"{escaped(str(key))}" = "{verdict}: {escaped(why)}"'


def escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Matched(NamedTuple):
    labelled: list
    unlabelled: list
    # Labels that nothing is found for any more.
    idle: list


def match(findings, labels):
    """Each label with one finding: of the same place first, else of the same text in the same
    file, the nearest."""
    left, labelled, waiting = dict(labels), [], []
    for finding in findings:
        label = left.pop(key_of(finding), None)
        if label:
            labelled.append((finding, label))
        else:
            waiting.append(finding)
    moved = defaultdict(list)
    for key in left:
        moved[key.file, key.rule, key.text].append(key)
    unlabelled = []
    for finding in waiting:
        keys = moved[finding.file, finding.rule, finding.text]
        if not keys:
            unlabelled.append(finding)
            continue
        nearest = min(keys, key=lambda key: distance(key.place, finding.place))
        keys.remove(nearest)
        labelled.append((finding, left.pop(nearest)))
    return Matched(labelled, unlabelled, sorted(left))


def distance(one, other):
    """Cells apart, then lines apart."""
    one, other = ([int(number) for number in place.split(":")] for place in (one, other))
    return [abs(a - b) for a, b in zip(one, other)]


def tally(labelled):
    """Rule → how many of each verdict."""
    counts = defaultdict(lambda: dict.fromkeys(VERDICTS, 0))
    for finding, label in labelled:
        counts[finding.rule][label.verdict] += 1
    return dict(sorted(counts.items()))


def precision(counts):
    """The share that is right, in percent. What is doubtful is not right."""
    return 100 * counts["right"] / sum(counts.values())
