"""What the commands of this folder have in common: the options `--write` and `--quick`, and how parts are measured."""

import argparse
import os
import signal
import sys

from .bench import REPOSITORY, LeftOut
from .results import write

RESULTS = os.path.join(REPOSITORY, "bench/RESULTS.md")


def make_parser(name, doc, quick):
    """A parser for `bench/NAME`; `quick` says what `--quick` does."""
    parser = argparse.ArgumentParser(prog=f"bench/{name}", description=doc.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the figures into bench/RESULTS.md")
    parser.add_argument("--quick", action="store_true", help=f"{quick}; not for results")
    return parser


def parse(parser):
    options = parser.parse_args()
    if options.quick and options.write:
        parser.error("figures of --quick are not written to bench/RESULTS.md")
    return options


def exit_on_sigterm():
    """Makes SIGTERM raise SystemExit, so that programs that were started are ended and scratch folders removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def measure_part(part, bench, section):
    """Measures a part, prints each figure as soon as it is known, and adds it to the section."""
    print(section.heading(), flush=True)
    try:
        for figure in part.measure(bench):
            add_and_print(section, figure)
    except LeftOut as left:
        add_and_print(section, left)
    print(flush=True)


def add_and_print(section, figure):
    section.add(figure)
    print(figure.line(), flush=True)


def finish(sections, is_written):
    """Writes the sections if asked to. Returns the exit status: 1 if a target was missed."""
    if is_written:
        write(RESULTS, sections)
    return 1 if any(section.misses() for section in sections) else 0
