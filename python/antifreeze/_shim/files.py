"""Where the shim saves, and what the script saves in its place."""

import os

from . import checkpoints, hooks
from .trainer import CannotSave, trainer

# Kept free on the disk beside what is written: as much again, and a little for the record of the run; at most `SPARE`.
SPARE, LITTLE = 64 << 20, 1 << 20


def saved_by_script():
    """By the function that the script has named for it. None when it has not."""
    if hooks.on_checkpoint is None:
        return None
    path = hooks.on_checkpoint()
    if not isinstance(path, (str, os.PathLike)):
        return {"path": None, "by": "script", "kind": checkpoints.SCRIPT}
    path = os.path.abspath(path)
    try:
        checkpoints.point(folder(), checkpoints.SCRIPT, trainer().steps.count, path)
    except (checkpoints.Damaged, OSError) as reason:
        raise CannotSave(f"on_checkpoint returned {path}, which is no checkpoint: {reason}") from None
    return {"path": path, "by": "script", "kind": checkpoints.SCRIPT}


def folder():
    """The run's saves folder; None without a guard."""
    return os.environ.get("ANTIFREEZE_SAVES")


def write(kind, step, size, writer):
    """Writes a checkpoint of so many bytes, about, to the run's saves folder."""
    saves = folder()
    if not saves:
        raise CannotSave("there is no folder for it")
    os.makedirs(saves, exist_ok=True)
    room = os.statvfs(saves)
    free, needed = room.f_bavail * room.f_frsize, size + min(size + LITTLE, SPARE)
    if free < needed:
        raise CannotSave(f"{_bytes(size)} need {_bytes(needed)} free on the disk of {saves}, which has {_bytes(free)}")
    path = checkpoints.write(saves, kind, step, writer)
    return {"path": path, "bytes": os.path.getsize(path), "by": "antifreeze", "kind": kind}


def _bytes(number):
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.1f} MB" if number < 1e7 else f"{number // 10**6} MB"
