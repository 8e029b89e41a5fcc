"""The job disk: a tar archive with the guest's programs and the job, which the guest unpacks."""

import hashlib
import io
import json
import os
import subprocess
import tarfile

from . import LAB, REPOSITORY


class MissingProgram(Exception):
    """A program that the lab needs is missing; the message says how to get it."""


def antifreeze_path():
    path = os.environ.get("ANTIFREEZE_BIN") or os.path.join(REPOSITORY, "target/release/antifreeze")
    if not os.access(path, os.X_OK):
        raise MissingProgram(f"{path} is missing; `cargo build --release` makes it")
    return path


def build_probe(image):
    """Returns the compiled probe. It is kept beside the image and rebuilt when its source changes."""
    source = os.path.join(LAB, "guest/probe.rs")
    path = image.file("probe-" + sha256(source)[:12])
    if not os.path.exists(path):
        try:
            subprocess.run(
                ["rustc", "--edition", "2024", "-O", "-C", "target-feature=+crt-static",
                 "-o", path + ".unfinished", source],
                check=True,
            )
        except FileNotFoundError:
            raise MissingProgram("rustc is missing; the probe is written in Rust") from None
        os.replace(path + ".unfinished", path)
    return path


def write_disk(path, image, job):
    with tarfile.open(path, "w") as tar:
        for folder in ("guest", "scenarios"):
            for name in sorted(os.listdir(os.path.join(LAB, folder))):
                if name.endswith(".py"):
                    tar.add(os.path.join(LAB, folder, name), f"{folder}/{name}", filter=_readable_by_all)
        tar.add(antifreeze_path(), "antifreeze", filter=_readable_by_all)
        tar.add(build_probe(image), "probe", filter=_readable_by_all)
        text = json.dumps(job).encode()
        entry = tarfile.TarInfo("job.json")
        entry.size, entry.mode = len(text), 0o644
        tar.addfile(entry, io.BytesIO(text))


def _readable_by_all(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444
    return entry


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
