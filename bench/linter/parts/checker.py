"""`antifreeze check` on a folder, and its findings in the places where a person looks."""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass

# The machine that code is judged for, whichever one judges.
MACHINE = ["--ram", "16G", "--vram", "8G", "--cores", "8"]
LINE_END = re.compile(r"\r\n|\r|\n")
SYNTAX_ERROR = "syntax-error"


@dataclass(frozen=True)
class Finding:
    file: str
    rule: str
    # In a notebook: the cell, from one, among cells of all kinds; lines count within it.
    cell: int | None
    line: int
    last_line: int
    message: str
    help: str = ""
    # The checksum of the line's text, by which a label knows the line again.
    text: str = ""

    @property
    def place(self):
        return f"{self.cell}:{self.line}" if self.cell else f"{self.line}"


def check(bench, folder, *flags):
    """The findings in the files under a folder, and what could not be read."""
    command = [bench.program, "check", "--output-format", "json", *MACHINE, *flags, "."]
    done = subprocess.run(
        command, cwd=folder, env=bench.environment(bench.scratch), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace",
    )
    troubles = done.stderr.splitlines()
    if not done.stdout.startswith("["):
        said = f"status {done.returncode}" + "".join(f"; {trouble}" for trouble in troubles[:3])
        sys.exit(f"bench/check: `antifreeze check` gave no list of findings: {said}")
    return findings(done.stdout, Sources(folder)), troubles


def findings(output, sources):
    return [
        Finding(
            file=item["file"], rule=item["name"], cell=item["cell"],
            line=item["start"]["line"], last_line=item["end"]["line"],
            message=item["message"], help=item["help"],
            text=checksum(sources.line(item["file"], item["cell"], item["start"]["line"])),
        )
        for item in json.loads(output)
    ]


def checksum(line):
    """Indentation does not count: what is moved into a block is still the same."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:8]


class Sources:
    """Lines of the files under a folder; of a notebook, of its cells."""

    def __init__(self, folder):
        self.folder = folder
        self.name, self.cells = None, {}

    def lines(self, file, cell):
        # Findings come file by file.
        if file != self.name:
            with open(os.path.join(self.folder, file), "rb") as source:
                self.name, self.cells = file, cells(file, source.read())
        return self.cells.get(cell, [])

    def line(self, file, cell, number):
        lines = self.lines(file, cell)
        return lines[number - 1] if 0 < number <= len(lines) else ""


def cells(file, content):
    """Number of the cell → its lines. What is no notebook has one, numbered None."""
    text = content.decode("utf-8-sig", errors="replace")
    if not file.endswith(".ipynb"):
        return {None: LINE_END.split(text)}
    notebook = json.loads(text)
    return {
        number: LINE_END.split("".join(cell.get("source", [])))
        for number, cell in enumerate(notebook.get("cells", []), 1)
        if cell.get("cell_type") == "code"
    }
