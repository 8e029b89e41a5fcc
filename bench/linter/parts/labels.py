"""labels.toml: the manual verdict on each finding in real code, `right`, `wrong` or `doubtful`.

One line per finding: `"package/path rule place checksum" = "verdict: why"`. The place is the line,
or `cell:line` in a notebook; the checksum is that of the line's text, so that a label still
matches when the line moves.
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


def finding_key(finding):
    return Key(finding.file, finding.rule, finding.place, finding.text)


def read_labels(path):
    with open(path, "rb") as file:
        return {parse_key(k): parse_label(k, v) for k, v in tomllib.load(file).items()}


def parse_key(text):
    # Only paths may contain spaces.
    parts = text.rsplit(" ", 3)
    if len(parts) != 4:
        raise ValueError(f"labels.toml: `{text}` is not `path rule place checksum`")
    return Key(*parts)


def parse_label(key, text):
    verdict, _, why = text.partition(":")
    if verdict not in VERDICTS or not why.strip():
        raise ValueError(f"labels.toml: {key}: `{text}` is not `verdict: why`")
    return Label(verdict, why.strip())


def format_label(key, verdict="", why=""):
    """Formats a line of labels.toml."""
    return f'"{escape_toml(str(key))}" = "{verdict}: {escape_toml(why)}"'


def escape_toml(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Matched(NamedTuple):
    labelled: list
    unlabelled: list
    # Labels without a finding.
    unused: list


def match_labels(findings, labels):
    """Matches each label with one finding: at the same place, or else the nearest one with the
    same text in the same file."""
    left, labelled, waiting = dict(labels), [], []
    for finding in findings:
        label = left.pop(finding_key(finding), None)
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
    """Returns the distance in cells, then in lines."""
    one, other = ([int(number) for number in place.split(":")] for place in (one, other))
    return [abs(a - b) for a, b in zip(one, other)]


def count_verdicts(labelled):
    """Counts the verdicts by rule."""
    counts = defaultdict(lambda: dict.fromkeys(VERDICTS, 0))
    for finding, label in labelled:
        counts[finding.rule][label.verdict] += 1
    return dict(sorted(counts.items()))


def precision_percent(counts):
    """Returns the percentage that is right. Doubtful findings count as not right."""
    return 100 * counts["right"] / sum(counts.values())
