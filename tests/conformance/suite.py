"""The command line of the suite, and its summary."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from . import compare, needs
from .entry import Entry
from .folders import Folders
from .observe import ALONE, LOUD, QUIET, observe
from .table import ENTRIES

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Outcome:
    entry: Entry
    #: None for an entry that was run.
    skipped: Optional[str]
    #: What was wrong, in lines to print; empty if the entry is good.
    trouble: List[str]
    seconds: float


def main(usage: Optional[str]) -> int:
    arguments = parse(usage)
    check_names(ENTRIES)
    if arguments.list:
        for entry in ENTRIES:
            heavy = " (heavy)" if entry.heavy else ""
            print(f"{entry.name}{heavy}: {' '.join(entry.command)}; needs {', '.join(entry.needs) or 'nothing'}")
            for known in entry.known:
                print(f"    known: {known.aspect}: {known.under!r}: {known.reason}")
        return 0
    chosen = [entry for entry in ENTRIES if is_chosen(entry, arguments)]
    binary = Path(os.environ.get("ANTIFREEZE_BIN") or ROOT / "target/release/antifreeze")
    if not binary.is_file():
        print(f"there is no {binary}: build it with `cargo build --release`, or set ANTIFREEZE_BIN", file=sys.stderr)
        return 2
    # Every user may read it: some entries are run as an ordinary one.
    base = Path(tempfile.mkdtemp(prefix="innocent-"))
    base.chmod(0o755)
    try:
        outcomes = run_all(chosen, binary, base, arguments)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return summary(outcomes, len(ENTRIES) - len(chosen))


def parse(usage: Optional[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=usage, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="run the heavy entries too")
    parser.add_argument("--only", metavar="PATTERN", help="run the entries whose name contains this")
    parser.add_argument("--list", action="store_true", help="list the entries and run nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="entries that run at a time")
    parser.add_argument("--verbose", action="store_true", help="print the known differences, and how long each took")
    return parser.parse_args()


def is_chosen(entry: Entry, arguments: argparse.Namespace) -> bool:
    if arguments.only:
        return arguments.only in entry.name
    return bool(arguments.all) or not entry.heavy


def check_names(entries: List[Entry]) -> None:
    names = [entry.name for entry in entries]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"the table names an entry twice: {', '.join(sorted(twice))}")


def run_all(entries: List[Entry], binary: Path, base: Path, arguments: argparse.Namespace) -> List[Outcome]:
    programs = base / "bin"
    programs.mkdir()
    shutil.copy(binary, programs / "antifreeze")
    for name in needs.compile_programs(programs):
        print(f"could not compile {name}")
    machine = needs.Machine(programs, entries)
    printing = threading.Lock()

    def run_one(numbered: tuple[int, Entry]) -> Outcome:
        number, entry = numbered
        began = time.monotonic()
        lacks = machine.missing_need(entry)
        trouble = [] if lacks else examine(entry, Folders(base / f"entry-{number}"), machine.path)
        outcome = Outcome(entry, lacks, trouble, time.monotonic() - began)
        with printing:
            report(outcome, arguments.verbose)
        return outcome

    # What takes longest begins first, so that nothing is waited for at the end.
    order = sorted(enumerate(entries), key=lambda numbered: not numbered[1].heavy)
    with ThreadPoolExecutor(max_workers=max(1, arguments.jobs)) as pool:
        return list(pool.map(run_one, order))


def examine(entry: Entry, folders: Folders, path: str) -> List[str]:
    """Runs an entry in each way. Returns what was wrong, in lines."""
    trouble: List[str] = []
    alone = observe(entry, ALONE, folders, path)
    if alone["status"] == "does not end":
        trouble.append(f"    it does not end within {entry.timeout:.0f} s alone")
    for how in (QUIET, LOUD) if entry.loud else (QUIET,):
        loud = how is LOUD
        under = observe(entry, how, folders, path)
        judgement = compare.judge(compare.find_differences(alone, under, loud), entry.known, loud)
        if judgement.is_good():
            continue
        trouble.append("  " + " ".join([*entry.around, *how, *entry.command])[:200])
        if judgement.unknown:
            # A program that differs from itself is a fault of the table.
            again = compare.find_differences(alone, observe(entry, ALONE, folders, path), loud=False)
            for aspect, values in judgement.unknown.items():
                trouble.append(compare.render(aspect, values))
                if aspect in again:
                    trouble.append("      (differs between two runs alone as well: the entry has to mask it)")
        for known in judgement.gone:
            trouble.append(f"    {known.aspect}\n      does not differ, but is a known difference: {known.reason}")
    shutil.rmtree(folders.base, ignore_errors=True)
    return trouble


def report(outcome: Outcome, verbose: bool) -> None:
    entry = outcome.entry
    if outcome.skipped:
        print(f"skipped {entry.name}: {outcome.skipped}", flush=True)
    elif outcome.trouble:
        print(f"FAILED {entry.name}", *outcome.trouble, sep="\n", flush=True)
    elif verbose:
        print(f"passed {entry.name} ({outcome.seconds:.1f} s)", flush=True)
        for known in entry.known:
            print(f"    known: {known.aspect}: {known.under!r}: {known.reason}")


def summary(outcomes: List[Outcome], left_out: int) -> int:
    failed = [outcome.entry.name for outcome in outcomes if outcome.trouble]
    skipped = sum(1 for outcome in outcomes if outcome.skipped)
    for name in failed:
        print(f"failed: {name}")
    if left_out:
        print(f"{left_out} entries were not chosen; --all runs every entry")
    print(f"{len(outcomes) - len(failed) - skipped} passed, {len(failed)} failed, {skipped} skipped")
    return 1 if failed else 0
