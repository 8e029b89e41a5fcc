"""Reads a guest's output disk, a tar archive with the lab's logs and antifreeze's record."""

import tarfile

RECORD = "home/u/.local/state/antifreeze"
LOGS = "run/lab"


def unpack_logs(disk, folder):
    with tarfile.open(disk) as tar:
        logs = [entry for entry in tar if entry.name.startswith(LOGS)]
        tar.extractall(folder, members=logs, filter="data")


def write_record(disk, path):
    """Writes antifreeze's record to a tar archive whose names begin with `runs/`."""
    with tarfile.open(disk) as source, tarfile.open(path, "w") as record:
        for entry in source:
            if entry.isfile() and entry.name.startswith(RECORD + "/runs/"):
                content = source.extractfile(entry)
                entry.name = entry.name.removeprefix(RECORD + "/")
                record.addfile(entry, content)
