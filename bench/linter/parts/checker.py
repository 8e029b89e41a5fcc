"""Runs `antifreeze check` on a folder and locates its findings."""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass

# The target machine, so that results do not depend on the machine that runs the bench.
MACHINE = ["--ram", "16G", "--vram", "8G", "--cores", "8"]
LINE_END = re.compile(r"\r\n|\r|\n")
SYNTAX_ERROR = "syntax-error"


@dataclass(frozen=True)
class Finding:
    file: str
    rule: str
    # In a notebook, the cell, from one among all cells; lines count within it.
    cell: int | None
    line: int
    last_line: int
    message: str
    help: str = ""
    # The checksum of the line's text, by which a label recognizes the line.
    text: str = ""

    @property
    def place(self):
        return f"{self.cell}:{self.line}" if self.cell else f"{self.line}"


def run_check(bench, folder, *flags):
    """Returns the findings under a folder, and the errors."""
    command = [bench.program, "check", "--output-format", "json", *MACHINE, *flags, "."]
    done = subprocess.run(
        command, cwd=folder, env=bench.environment(bench.scratch), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, errors="replace",
    )
    troubles = done.stderr.splitlines()
    if not done.stdout.startswith("["):
        said = f"status {done.returncode}" + "".join(f"; {trouble}" for trouble in troubles[:3])
        sys.exit(f"bench/check: `antifreeze check` returned no list of findings: {said}")
    return parse_findings(done.stdout, Sources(folder)), troubles


def parse_findings(output, sources):
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
    """Returns the checksum of a line without its indentation."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:8]


class Sources:
    """The lines of files under a folder, and of the cells of notebooks."""

    def __init__(self, folder):
        self.folder = folder
        self.name, self.cells = None, {}

    def lines(self, file, cell):
        # Findings are sorted by file.
        if file != self.name:
            with open(os.path.join(self.folder, file), "rb") as source:
                self.name, self.cells = file, split_cells(file, source.read())
        return self.cells.get(cell, [])

    def line(self, file, cell, number):
        lines = self.lines(file, cell)
        return lines[number - 1] if 0 < number <= len(lines) else ""


def split_cells(file, content):
    """Returns the lines by cell number. A script has a single cell, None."""
    text = content.decode("utf-8-sig", errors="replace")
    if not file.endswith(".ipynb"):
        return {None: LINE_END.split(text)}
    notebook = json.loads(text)
    return {
        number: LINE_END.split("".join(cell.get("source", [])))
        for number, cell in enumerate(notebook.get("cells", []), 1)
        if cell.get("cell_type") == "code"
    }
