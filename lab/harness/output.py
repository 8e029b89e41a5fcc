"""What a guest left on its output disk, a tar: the lab's logs and antifreeze's record."""

import tarfile

RECORD = "home/u/.local/state/antifreeze"
LOGS = "run/lab"


def unpack(disk, folder):
    """The logs, for reading."""
    with tarfile.open(disk) as tar:
        logs = [entry for entry in tar if entry.name.startswith(LOGS)]
        tar.extractall(folder, members=logs, filter="data")


def write_record(disk, path):
    """Only antifreeze's record, as a tar whose names begin with `runs/`."""
    with tarfile.open(disk) as source, tarfile.open(path, "w") as record:
        for entry in source:
            if entry.isfile() and entry.name.startswith(RECORD + "/runs/"):
                content = source.extractfile(entry)
                entry.name = entry.name.removeprefix(RECORD + "/")
                record.addfile(entry, content)
