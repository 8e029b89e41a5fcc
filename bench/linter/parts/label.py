"""`bench/check label`: findings that nobody has judged yet, with what a judge needs to see."""

from collections import Counter

from . import labels
from .checker import Sources
from .corpus import Corpus
from .precision import LABELS, judgeable, on_the_corpus

AROUND = 15


def show(bench, count, rule=None):
    corpus = Corpus()
    for why in corpus.fetch("training"):
        print(f"left out: {why}")
    flags = ["--preview"] if bench.preview else []
    found, _ = on_the_corpus(bench, corpus, *flags)
    waiting = labels.match(judgeable(found), labels.read(LABELS)).unlabelled
    waiting = [finding for finding in waiting if rule in (None, finding.rule)]
    sources = Sources(corpus.tree("training"))
    for finding in waiting[:count]:
        print(excerpt(finding, sources.lines(finding.file, finding.cell)), end="\n\n")
    print(f"{len(waiting)} without a label, in {corpus.tree('training')}")
    for name, number in Counter(f.rule for f in waiting).most_common():
        print(f"  {number:5} {name}")


def excerpt(finding, lines):
    """The finding, the lines around it, and the line for labels.toml to complete."""
    first, last = finding.line, max(finding.line, finding.last_line)
    shown = [f"{finding.file}:{finding.place} {finding.rule}", f"  {finding.message}"]
    for number in range(max(1, first - AROUND), min(len(lines), last + AROUND) + 1):
        mark = ">" if first <= number <= last else " "
        shown.append(f"{mark}{number:6} | {lines[number - 1]}".rstrip())
    shown.append(labels.line(labels.key_of(finding), "right|wrong|doubtful", "why"))
    return "\n".join(shown)
