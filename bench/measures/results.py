"""bench/RESULTS.md: one section for each part, replaced when the part is measured again."""

import os
import platform
import re
import time

from .bench import LeftOut

INTRODUCTION = """# What the guard costs

Measured by `bench/guard --write`; [README.md](README.md) says how and what each figure means.
A ratio below 1 is good for a target with ≤, above 1 for one with ≥.
"""
# A higher load means that other programs were running.
BUSY_LOAD = 1.0


class Section:
    def __init__(self, part, title, conditions, command, mark):
        self.part, self.title, self.conditions = part, title, conditions
        self.command, self.mark = command, mark
        self.figures, self.left_out = [], []

    @staticmethod
    def begin(part, title, quick, command="bench/guard", mark=None):
        """`mark` identifies the section in RESULTS.md; by default the name of the part."""
        said = conditions(os.getloadavg()[0]) + (" Quick trial." if quick else "")
        return Section(part, title, said, command, mark or part)

    def add(self, figure):
        (self.left_out if isinstance(figure, LeftOut) else self.figures).append(figure)

    def misses(self):
        return [figure for figure in self.figures if not figure.is_met()]

    def heading(self):
        return f"{self.title} ({self.part})\n  {self.conditions}"

    def text(self):
        lines = [f"## {self.title}", "", f"`{self.command} --write {self.part}`. {self.conditions}", ""]
        lines += ["| what | measured | target | ratio | | remark |", "|---|--:|--:|--:|---|---|"]
        lines += ["| " + " | ".join(figure.cells()) + " |" for figure in self.figures]
        lines += [f"\nLeft out: {left}." for left in self.left_out]
        return "\n".join(lines)


def conditions(load):
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) * 1024
    busy = " **a busy machine: absolute figures are worse than they need be**" if load > BUSY_LOAD else ""
    return (
        f"{time.strftime('%Y-%m-%d', time.gmtime())}, {os.cpu_count()} cores, "
        f"{memory / 1e9:.0f} GB, Linux {platform.release()} {platform.machine()}, "
        f"load before {load:.1f}.{busy}"
    )


def write(path, sections):
    try:
        with open(path) as file:
            text = file.read()
    except FileNotFoundError:
        text = INTRODUCTION
    for section in sections:
        begin, end = f"<!-- {section.mark} -->", f"<!-- end of {section.mark} -->"
        block = f"{begin}\n{section.text()}\n{end}"
        old = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        if old.search(text):
            text = old.sub(lambda _: block, text)
        else:
            text = text.rstrip("\n") + f"\n\n{block}\n"
    with open(path, "w") as file:
        file.write(text)
