"""How often a finding on real training code is right, as labelled by hand in labels.toml."""

import ast
import os

from measures.bench import LeftOut
from measures.figure import Figure, at_least, exactly

from . import labels
from .checker import SYNTAX_ERROR, split_cells, run_check
from .corpus import HERE, Corpus
from .training import training_kind

TITLE = "Precision on real training code"
LABELS = os.path.join(HERE, "labels.toml")
OVERALL, PER_RULE = at_least(95), at_least(90)


def measure(bench):
    corpus = Corpus()
    for why in corpus.fetch("training"):
        yield LeftOut(f"{why}")
    yield corpus_figure(corpus)
    found, strays = check_corpus(bench, corpus)
    for stray in strays:
        yield LeftOut(stray)
    yield syntax_error_figure(corpus, found)
    # Rules in preview have labels too, to show what they still lack.
    in_preview, _ = check_corpus(bench, corpus, "--preview")
    matched = labels.match_labels(without_syntax_errors(in_preview), labels.read_labels(LABELS))
    bench.judged = figures_for_pages(corpus, matched)
    default = set(without_syntax_errors(found))
    yield from precision_figures("all default rules", select_matched(matched, default.__contains__), OVERALL, PER_RULE)
    if matched.unused:
        yield Figure("labels without a finding", len(matched.unused), "")
        for key in matched.unused:
            print(f"  label without a finding: {key}")
    if bench.preview:
        in_preview_only = select_matched(matched, lambda finding: finding not in default)
        yield from precision_figures("all rules in preview", in_preview_only)


def without_syntax_errors(found):
    return [finding for finding in found if finding.rule != SYNTAX_ERROR]


def select_matched(matched, belongs):
    """Returns the labelled and the unlabelled findings that satisfy a condition."""
    labelled = [(finding, label) for finding, label in matched.labelled if belongs(finding)]
    return labelled, [finding for finding in matched.unlabelled if belongs(finding)]


def check_corpus(bench, corpus, *flags):
    """Returns the findings in the training files, and errors about these files."""
    counted = set(corpus.training_files())
    found, troubles = run_check(bench, corpus.tree("training"), *flags)
    strays = [trouble for trouble in troubles if any(file in trouble for file in counted)]
    return [finding for finding in found if finding.file in counted], strays


def corpus_figure(corpus):
    tree, files = corpus.tree("training"), corpus.training_files()
    loops = lines = 0
    for file in files:
        with open(os.path.join(tree, file), "rb") as source:
            content = source.read()
        loops += training_kind(file, content) == "loop"
        lines += sum(len(lines_of_it) for lines_of_it in split_cells(file, content).values())
    packages = len({file.split("/")[0] for file in files})
    notebooks = sum(file.endswith(".ipynb") for file in files)
    remark = (
        f"of {packages} packages, {lines} lines; {loops} with their own training loop, "
        f"{notebooks} notebooks"
    )
    return Figure("training files", len(files), "", at_least(300), remark)


def figures_for_pages(corpus, matched):
    """Returns the figures for the rule pages."""
    rules = labels.count_verdicts(matched.labelled)
    for rule in rules:
        rules[rule]["unlabelled"] = 0
    for finding in matched.unlabelled:
        none = dict.fromkeys((*labels.VERDICTS, "unlabelled"), 0)
        rules.setdefault(finding.rule, none)["unlabelled"] += 1
    return {"files": len(corpus.training_files()), "rules": dict(sorted(rules.items()))}


def precision_figures(name, findings, overall=None, per_rule=None):
    labelled, unlabelled = findings
    remark = f"of {len(labelled) + len(unlabelled)}"
    if unlabelled:
        remark += "; see `bench/check label`"
    target = exactly(0) if overall else None
    yield Figure(f"{name}: findings without a label", len(unlabelled), "", target, remark)
    counts = labels.count_verdicts(labelled)
    if counts:
        total = {v: sum(c[v] for c in counts.values()) for v in labels.VERDICTS}
        yield precision_figure(f"{name}: right", total, overall)
    for rule, verdicts in counts.items():
        yield precision_figure(rule, verdicts, per_rule)


def precision_figure(name, verdicts, target):
    remark = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
    return Figure(name, labels.precision_percent(verdicts), "%", target, remark)


def syntax_error_figure(corpus, found):
    """Compares syntax errors with Python's parser, except in notebooks with magic commands."""
    accused = {f.file for f in found if f.rule == SYNTAX_ERROR and f.file.endswith(".py")}
    wrong = [file for file in sorted(accused) if parses_in_python(os.path.join(corpus.tree("training"), file))]
    for file in wrong:
        print(f"  Python can parse it: {file}")
    remark = f"of {len(accused)} files with a syntax error"
    return Figure("syntax errors that Python does not see", len(wrong), "", exactly(0), remark)


def parses_in_python(path):
    with open(path, "rb") as file:
        try:
            ast.parse(file.read())
        except (SyntaxError, ValueError):
            return False
    return True
