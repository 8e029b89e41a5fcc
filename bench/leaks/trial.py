"""Tries a remedy: runs a script out of memory, applies the edits of its verdict to a copy, and runs the copy again
within the same budget."""

import ast
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
# Seconds after which a run is ended.
TIMEOUT = 300
# A repaired script that is still running at the timeout holds if it ran this many times as long as the original.
WELL_PAST = 3
# Enough for every script that is not repaired.
WIDE_BUDGET = "4GB"
KINDS = ("holds", "no remedy", "no effect", "does not run", "wrong place", "needs no remedy")


class Script:
    """A script of the collection: its path, its budget, and the lines that leak. Antifreeze sees neither."""

    def __init__(self, path, budget, lines):
        self.path, self.budget, self.lines = path, budget, lines
        self.name = os.path.basename(path)[: -len(".py")]


class Outcome:
    """What became of one script. `kind` is one of KINDS:

    - `holds`: the verdict names a line that leaks, and the repaired script ends by itself within the budget;
    - `no remedy`: no change to the script is offered, and the words name the right line, or none;
    - `no effect`: the repaired script runs out of memory again;
    - `does not run`: the edits do not apply, or the repaired script fails with another error;
    - `wrong place`: the verdict names other lines than those that leak;
    - `needs no remedy`: the script did not run out of memory.
    """

    def __init__(self, script, kind, verdict, named=(), remedies=(), after=None, detail="", same_result=None):
        self.script, self.kind, self.verdict, self.named, self.remedies = script, kind, verdict, named, remedies
        self.after, self.detail, self.same_result = after, detail, same_result

    def cause(self):
        causes = self.verdict["causes"]
        return f"{causes[0]['code']} {causes[0]['confidence']:.2f}" if causes else "none"


class Run:
    """One run of a script under `antifreeze run`."""

    def __init__(self, status, seconds, output, errors, verdict):
        # None when it was ended at the timeout.
        self.status, self.seconds, self.verdict = status, seconds, verdict
        self.printed, self.last_line = output + errors, output.strip().split("\n")[-1]

    def ended_by_memory(self):
        end = self.verdict["end"]
        words = end["detail"] + self.printed
        return end["kind"] in ("walled", "stopped", "oom-killed") or re.search(
            "MemoryError|can't allocate memory|out of memory|OOM when allocating|RESOURCE_EXHAUSTED", words
        ) is not None


def scripts(folder):
    """The scripts of a folder, by what `truth.toml` beside it says of them."""
    with open(os.path.join(os.path.dirname(os.path.abspath(folder)), "truth.toml"), "rb") as file:
        truth = tomllib.load(file)
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    return [Script(os.path.join(folder, name), **truth[name[: -len(".py")]]) for name in names]


def try_remedies(program, python, script, scratch, compare_results=False):
    """Runs a script, applies what is offered, and runs it again."""
    folder = tempfile.mkdtemp(dir=scratch)
    copy = os.path.join(folder, os.path.basename(script.path))
    shutil.copy(script.path, copy)
    first = run(program, python, copy, script.budget)
    if not first.ended_by_memory():
        return Outcome(script, "needs no remedy", first.verdict, detail=f"exit status {first.status}", after=first)
    named, remedies = named_lines(first.verdict, script.lines), offered(first.verdict)
    if not remedies:
        place = first.verdict["causes"][0]["location"] if first.verdict["causes"] else None
        if place is None:
            return Outcome(script, "no remedy", first.verdict, named, detail="" if named else "no line is named")
        return Outcome(script, "no remedy" if named else "wrong place", first.verdict, named)

    def outcome(kind, detail="", after=None):
        same = None
        if kind == "holds" and compare_results:
            same = has_same_result(program, python, script, after, scratch)
        if kind != "does not run" and not named:
            # Less memory may be needed for the wrong reason: a model that no longer learns needs less too.
            kind, detail = "wrong place", detail or kind
        return Outcome(script, kind, first.verdict, named, remedies, after, detail, same)

    try:
        apply([edit for remedy in remedies for edit in remedy["edits"]], folder)
    except (ValueError, SyntaxError) as error:
        return outcome("does not run", str(error))
    again = run(program, python, copy, script.budget)
    if again.status == 0:
        return outcome("holds", after=again)
    if again.status is None:
        kind = "holds" if again.seconds > WELL_PAST * first.seconds else "no effect"
        return outcome(kind, f"still running after {again.seconds:.0f} s", again)
    if again.ended_by_memory():
        return outcome("no effect", f"out of memory again, after {again.seconds:.0f} s", again)
    last = again.printed.strip().split("\n")[-1]
    return outcome("does not run", last[:200], again)


def run(program, python, script, budget):
    home = tempfile.mkdtemp(dir=os.path.dirname(script), prefix=".home-")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("ANTIFREEZE_")}
    environment = {**plain, "ANTIFREEZE_HOME": home, "CUDA_VISIBLE_DEVICES": "-1"}
    command = [program, "run", "--quiet", "--nice", "0", "--budget", budget, "--", python, os.path.basename(script)]
    began = time.monotonic()
    with tempfile.TemporaryFile(dir=home) as output, tempfile.TemporaryFile(dir=home) as errors:
        child = subprocess.Popen(
            command, cwd=os.path.dirname(script), env=environment, stdin=subprocess.DEVNULL, stdout=output,
            stderr=errors,
        )
        try:
            status = child.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            status = None
            child.terminate()
            child.wait(60)
        seconds = time.monotonic() - began
        texts = [_read_from_start(file) for file in (output, errors)]
    explained = subprocess.run(
        [program, "explain", "--json"], env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    return Run(status, seconds, *texts, json.loads(explained.stdout))


def _read_from_start(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def offered(verdict):
    """The remedies of the likeliest cause that are changes to the script."""
    causes = verdict["causes"]
    return [remedy for remedy in causes[0]["remedies"] if remedy.get("edits")] if causes else []


def named_lines(verdict, lines):
    """Which of the lines that leak the likeliest cause names: in its place, its evidence, or its remedies."""
    found = set()
    for cause in verdict["causes"][:1]:
        place = cause["location"] or {}
        found.add(place.get("line"))
        words = [cause["summary"], *(evidence["text"] for evidence in cause["evidence"])]
        for remedy in cause["remedies"]:
            words.append(remedy["text"])
            for edit in remedy.get("edits", []):
                found.update(range(edit["line"], edit["last_line"] + 1))
        found.update(int(line) for text in words for line in re.findall(r"\.py:(\d+)", text))
    return sorted(found & set(lines))


def apply(edits, folder):
    """Changes the files as the edits say, the last line first."""
    for file in {edit["file"] for edit in edits}:
        path = os.path.join(folder, file)
        with open(path) as opened:
            lines = opened.read().split("\n")
        imports = []
        # A line that follows a statement is inserted before the statement itself is replaced.
        order = {"insert-after": 0, "replace": 1, "insert-before": 2}
        for edit in sorted(
            (edit for edit in edits if edit["file"] == file), key=lambda edit: (-edit["line"], order[edit["action"]])
        ):
            _apply_one(edit, lines)
            imports += [line for line in edit.get("imports", []) if line not in imports]
        at = _place_for_imports(lines)
        lines[at:at] = imports
        text = "\n".join(lines)
        ast.parse(text)
        with open(path, "w") as opened:
            opened.write(text)


def _apply_one(edit, lines):
    first, last = edit["line"] - 1, edit["last_line"]
    if "\n".join(lines[first:last]).strip() != edit["before"].strip():
        raise ValueError(f"line {edit['line']} is not what the edit expects: {edit['before']!r}")
    indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
    # Further lines of a statement of several lines keep the indentation that they have.
    keeps_indentation = edit["action"] == "replace" and last - first > 1
    code = edit["code"].split("\n") if edit["code"] else []
    new = [line if number and keeps_indentation else indent + line for number, line in enumerate(code)]
    if edit["action"] == "replace":
        lines[first:last] = new
    elif edit["action"] == "insert-before":
        lines[first:first] = new
    else:
        lines[last:last] = new


def _place_for_imports(lines):
    """After the docstring and imports from `__future__`."""
    place = 0
    for statement in ast.parse("\n".join(lines)).body:
        is_docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not is_docstring and not is_future:
            break
        place = statement.end_lineno
    return place


def has_same_result(program, python, script, after, scratch):
    """Whether the script as it was, with memory enough, prints the same last line as the repaired one."""
    folder = tempfile.mkdtemp(dir=scratch)
    copy = os.path.join(folder, os.path.basename(script.path))
    shutil.copy(script.path, copy)
    whole = run(program, python, copy, WIDE_BUDGET)
    if whole.status != 0:
        return None
    return whole.last_line == after.last_line
