"""The two trees that `antifreeze check` is measured on, from the files that corpus.toml pins.

`library` is much code to be fast on: all Python of a few large wheels. `training` is real
training code to be right about: what `training.py` picks from many source archives. Archives
are not kept, and nothing of them is run.
"""

import hashlib
import io
import os
import shutil
import tarfile
import tomllib
import zipfile

from . import tools
from .index import Index, Unavailable, package_of
from .training import selection_checksum, training_kind

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PINS = os.path.join(HERE, "corpus.toml")
# The maximum number of training files per package.
MOST_OF_ONE = 25
# Folders that linters skip.
CLOSED = {"build", "dist", "site-packages", "node_modules", "venv", "_build", "buck-out"}


class Corpus:
    def __init__(self, folder=None):
        self.folder = folder or tools.cache()
        with open(PINS, "rb") as file:
            self.pins = tomllib.load(file)

    def tree(self, name):
        return os.path.join(self.folder, name)

    def fetch(self, name):
        """Updates the tree and yields what could not be fetched."""
        index, wanted = Index(), self.pins[name]
        self.drop_strangers(name, wanted)
        for file, sha256 in wanted.items():
            mark = os.path.join(self.folder, "fetched", name, file)
            # A tree is rebuilt when the selection changes.
            is_now = f"{sha256} {selection_checksum() if name == 'training' else 'all'}"
            if read(mark) == is_now:
                continue
            print(f"  fetching {file}", flush=True)
            try:
                self.unpack(name, file, index.download(file, sha256))
            except (Unavailable, tarfile.TarError, zipfile.BadZipFile) as why:
                yield why
                continue
            write(mark, is_now.encode())

    def unpack(self, name, file, content):
        place = os.path.join(self.tree(name), package_of(file))
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        for path, text in members(file, content):
            if is_closed(path):
                continue
            if path.endswith(".py") if name == "library" else training_kind(path, text):
                write(os.path.join(place, path), text)

    def drop_strangers(self, name, wanted):
        """Removes what this corpus.toml no longer names."""
        packages = {package_of(file) for file in wanted}
        for package in listed(self.tree(name)):
            if package not in packages:
                shutil.rmtree(os.path.join(self.tree(name), package))
        for file in listed(os.path.join(self.folder, "fetched", name)):
            if file not in wanted:
                os.remove(os.path.join(self.folder, "fetched", name, file))

    def training_files(self):
        """Returns `package/path` of the training files without duplicates, in a fixed order."""
        chosen, seen = [], set()
        for package in listed(self.tree("training")):
            paths = files_under(os.path.join(self.tree("training"), package))
            fresh = {}
            for path in sorted(paths, key=shuffled):
                content = digest(os.path.join(self.tree("training"), package, path))
                if content not in seen and len(fresh) < MOST_OF_ONE:
                    fresh.setdefault(content, f"{package}/{path}")
            seen.update(fresh)
            chosen += sorted(fresh.values())
        return chosen


def members(file, content):
    """Yields path and content of the Python files and notebooks in an archive, without the top
    folder of a source archive."""
    if file.endswith((".whl", ".zip")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for path in archive.namelist():
                if is_code(path):
                    yield inner(file, path), archive.read(path)
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            if member.isfile() and is_code(member.name):
                yield inner(file, member.name), archive.extractfile(member).read()


def inner(file, path):
    return path if file.endswith(".whl") else path.removeprefix("./").partition("/")[2]


def is_code(path):
    return path.endswith((".py", ".ipynb"))


def is_closed(path):
    """Whether linters would skip the path, or it leaves the folder."""
    parts = path.split("/")
    return path.startswith("/") or any(p.startswith(".") or p in CLOSED or not p for p in parts)


def shuffled(path):
    """Returns a sort key that prefers no folder."""
    return hashlib.sha256(path.encode()).digest()


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def count(folder):
    """Counts the files, lines and bytes of Python under a folder."""
    paths = [os.path.join(folder, path) for path in files_under(folder)]
    sizes = [size(path) for path in paths]
    return len(paths), sum(lines for lines, _ in sizes), sum(size for _, size in sizes)


def size(path):
    with open(path, "rb") as file:
        content = file.read()
    return content.count(b"\n") + (not content.endswith(b"\n") and bool(content)), len(content)


def files_under(folder):
    found = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        found += [os.path.relpath(os.path.join(place, name), folder) for name in sorted(files)]
    return found


def listed(folder):
    return sorted(os.listdir(folder)) if os.path.isdir(folder) else []


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
