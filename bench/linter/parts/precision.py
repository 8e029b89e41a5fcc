"""How often a finding on real training code is right, as labelled by hand in labels.toml."""

import ast
import os

from measures.bench import LeftOut
from measures.figure import Figure, at_least, exactly

from . import labels
from .checker import SYNTAX_ERROR, cells, check
from .corpus import HERE, Corpus
from .training import trains

TITLE = "Precision on real training code"
LABELS = os.path.join(HERE, "labels.toml")
OVERALL, PER_RULE = at_least(95), at_least(90)


def measure(bench):
    corpus = Corpus()
    for why in corpus.fetch("training"):
        yield LeftOut(f"{why}")
    yield about(corpus)
    found, strays = on_the_corpus(bench, corpus)
    for stray in strays:
        yield LeftOut(stray)
    yield syntax_errors(corpus, found)
    # Rules in preview have labels too, so that it is known what they still lack.
    in_preview, _ = on_the_corpus(bench, corpus, "--preview")
    matched = labels.match(judgeable(in_preview), labels.read(LABELS))
    bench.judged = in_figures(corpus, matched)
    default = set(judgeable(found))
    yield from judged("all default rules", of(matched, default.__contains__), OVERALL, PER_RULE)
    if matched.idle:
        yield Figure("labels without a finding", len(matched.idle), "")
        for key in matched.idle:
            print(f"  no finding any more: {key}")
    if bench.preview:
        in_preview_only = of(matched, lambda finding: finding not in default)
        yield from judged("all rules in preview", in_preview_only)


def judgeable(found):
    return [finding for finding in found if finding.rule != SYNTAX_ERROR]


def of(matched, belongs):
    """The labelled and the unlabelled findings among those that belong."""
    labelled = [(finding, label) for finding, label in matched.labelled if belongs(finding)]
    return labelled, [finding for finding in matched.unlabelled if belongs(finding)]


def on_the_corpus(bench, corpus, *flags):
    """Findings in the files that count, and what could not be read of them."""
    counted = set(corpus.training_files())
    found, troubles = check(bench, corpus.tree("training"), *flags)
    strays = [trouble for trouble in troubles if any(file in trouble for file in counted)]
    return [finding for finding in found if finding.file in counted], strays


def about(corpus):
    tree, files = corpus.tree("training"), corpus.training_files()
    loops = lines = 0
    for file in files:
        with open(os.path.join(tree, file), "rb") as source:
            content = source.read()
        loops += trains(file, content) == "loop"
        lines += sum(len(lines_of_it) for lines_of_it in cells(file, content).values())
    packages = len({file.split("/")[0] for file in files})
    notebooks = sum(file.endswith(".ipynb") for file in files)
    remark = (
        f"of {packages} packages, {lines} lines; {loops} with the loop in their own hands, "
        f"{notebooks} notebooks"
    )
    return Figure("training files", len(files), "", at_least(300), remark)


def in_figures(corpus, matched):
    """What the pages of the rules say of them."""
    rules = labels.tally(matched.labelled)
    for rule in rules:
        rules[rule]["unlabelled"] = 0
    for finding in matched.unlabelled:
        none = dict.fromkeys((*labels.VERDICTS, "unlabelled"), 0)
        rules.setdefault(finding.rule, none)["unlabelled"] += 1
    return {"files": len(corpus.training_files()), "rules": dict(sorted(rules.items()))}


def judged(name, findings, overall=None, per_rule=None):
    labelled, unlabelled = findings
    remark = f"of {len(labelled) + len(unlabelled)}"
    if unlabelled:
        remark += "; see `bench/check label`"
    target = exactly(0) if overall else None
    yield Figure(f"{name}: findings without a label", len(unlabelled), "", target, remark)
    counts = labels.tally(labelled)
    if counts:
        total = {v: sum(c[v] for c in counts.values()) for v in labels.VERDICTS}
        yield share(f"{name}: right", total, overall)
    for rule, verdicts in counts.items():
        yield share(rule, verdicts, per_rule)


def share(name, verdicts, target):
    remark = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    return Figure(name, labels.precision(verdicts), "%", target, remark)


def syntax_errors(corpus, found):
    """Judged by Python itself. Notebooks are left to the tests, because of their magic lines."""
    accused = {f.file for f in found if f.rule == SYNTAX_ERROR and f.file.endswith(".py")}
    wrong = [file for file in sorted(accused) if parses(os.path.join(corpus.tree("training"), file))]
    for file in wrong:
        print(f"  Python reads it: {file}")
    remark = f"of {len(accused)} files that have one"
    return Figure("syntax errors that Python does not see", len(wrong), "", exactly(0), remark)


def parses(path):
    with open(path, "rb") as file:
        try:
            ast.parse(file.read())
        except (SyntaxError, ValueError):
            return False
    return True
