"""The job disk: the programs of the guest and what to do with them, as a tar that it unpacks."""

import hashlib
import io
import json
import os
import subprocess
import tarfile

from . import LAB, REPOSITORY


class Missing(Exception):
    """A program that the lab needs is not there; the message says how to get it."""


def antifreeze():
    path = os.environ.get("ANTIFREEZE_BIN") or os.path.join(REPOSITORY, "target/release/antifreeze")
    if not os.access(path, os.X_OK):
        raise Missing(f"{path} is missing; `cargo build --release` makes it")
    return path


def probe(image):
    """The compiled probe, kept beside the image and made again when its source changes."""
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
            raise Missing("rustc is missing; the probe is written in Rust") from None
        os.replace(path + ".unfinished", path)
    return path


def write_disk(path, image, job):
    with tarfile.open(path, "w") as tar:
        for folder in ("guest", "scenarios"):
            for name in sorted(os.listdir(os.path.join(LAB, folder))):
                if name.endswith(".py"):
                    tar.add(os.path.join(LAB, folder, name), f"{folder}/{name}", filter=_for_everybody)
        tar.add(antifreeze(), "antifreeze", filter=_for_everybody)
        tar.add(probe(image), "probe", filter=_for_everybody)
        text = json.dumps(job).encode()
        entry = tarfile.TarInfo("job.json")
        entry.size, entry.mode = len(text), 0o644
        tar.addfile(entry, io.BytesIO(text))


def _for_everybody(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    entry.mode |= 0o444
    return entry


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
