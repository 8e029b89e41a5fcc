"""`bench/check label`: shows findings without a label, with the code around them."""

from collections import Counter

from . import labels
from .checker import Sources
from .corpus import Corpus
from .precision import LABELS, without_syntax_errors, check_corpus

AROUND = 15


def show_unlabelled(bench, count, rule=None):
    corpus = Corpus()
    for why in corpus.fetch("training"):
        print(f"left out: {why}")
    flags = ["--preview"] if bench.preview else []
    found, _ = check_corpus(bench, corpus, *flags)
    waiting = labels.match_labels(without_syntax_errors(found), labels.read_labels(LABELS)).unlabelled
    waiting = [finding for finding in waiting if rule in (None, finding.rule)]
    sources = Sources(corpus.tree("training"))
    for finding in waiting[:count]:
        print(format_excerpt(finding, sources.lines(finding.file, finding.cell)), end="\n\n")
    print(f"{len(waiting)} without a label, in {corpus.tree('training')}")
    for name, number in Counter(f.rule for f in waiting).most_common():
        print(f"  {number:5} {name}")


def format_excerpt(finding, lines):
    """Returns the finding, the code around it and a line to complete for labels.toml."""
    first, last = finding.line, max(finding.line, finding.last_line)
    shown = [f"{finding.file}:{finding.place} {finding.rule}", f"  {finding.message}"]
    for number in range(max(1, first - AROUND), min(len(lines), last + AROUND) + 1):
        mark = ">" if first <= number <= last else " "
        shown.append(f"{mark}{number:6} | {lines[number - 1]}".rstrip())
    shown.append(labels.format_label(labels.finding_key(finding), "right|wrong|doubtful", "why"))
    return "\n".join(shown)
