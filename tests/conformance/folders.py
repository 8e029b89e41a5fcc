"""The folders of a run. They are empty and have the same paths for every run of an entry, so that paths in the output
and in the environment do not differ; afterwards what is in them is part of the observation."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Dict, Iterator, List

#: Programs that entries bring.
PROGRAMS = Path(__file__).parent / "programs"
#: Larger files are compared by their size and digest alone.
SHOWN_BYTES = 4096


class Folders:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.work = base / "work"
        self.home = base / "home"
        self.temporary = base / "tmp"
        self.runtime = base / "runtime"
        #: Antifreeze's own, which is not compared.
        self.antifreeze = base / "antifreeze"

    def all(self) -> List[Path]:
        return [self.work, self.home, self.temporary, self.runtime, self.antifreeze]

    def recreate(self, brings: Iterator[str], owner: int) -> None:
        """Empties the folders and puts the program's files in place."""
        shutil.rmtree(self.base, ignore_errors=True)
        self.base.mkdir(parents=True)
        for folder in self.all():
            folder.mkdir(mode=0o700)
        for name in brings:
            shutil.copy(PROGRAMS / name, self.work)
        if owner:
            for path in [self.base, *self.base.rglob("*")]:
                os.chown(path, owner, owner)

    def environment(self) -> Dict[str, str]:
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "ANTIFREEZE_HOME": str(self.antifreeze),
            "PWD": str(self.work),
        }

    def files(self) -> Dict[str, str]:
        """A description of each file that is left, by its path: its content in the working folder, its kind elsewhere."""
        found = {}
        for folder in (self.work, self.home, self.temporary, self.runtime):
            for path in sorted(folder.rglob("*")):
                found[str(path.relative_to(self.base))] = describe_file(path, with_content=folder == self.work)
        return found


def describe_file(path: Path, with_content: bool) -> str:
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    if path.is_dir():
        return "folder"
    if not path.is_file():
        return "special file"
    # Byte code holds the time at which its source was written.
    if not with_content or path.suffix == ".pyc":
        return "file"
    content = path.read_bytes()
    mode = f"mode {path.stat().st_mode & 0o7777:o}, {len(content)} bytes"
    if len(content) <= SHOWN_BYTES:
        return f"{mode}: {content!r}"
    return f"{mode}, sha256 {hashlib.sha256(content).hexdigest()}"
