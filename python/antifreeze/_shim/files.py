"""Where saves go, whole or not at all."""

import contextlib
import os

from . import hooks
from .trainer import CannotSave

# Kept free on the disk beside what is written.
SPARE = 64 << 20


def saved_by_script():
    """By the function that the script has named for it. None when it has not."""
    if hooks.on_checkpoint is None:
        return None
    path = hooks.on_checkpoint()
    return {"path": os.path.abspath(path) if isinstance(path, (str, os.PathLike)) else None, "by": "script"}


def place(name, size):
    """The path of a new save of so many bytes."""
    folder = os.environ.get("ANTIFREEZE_SAVES")
    if not folder:
        raise CannotSave("there is no folder for it")
    os.makedirs(folder, exist_ok=True)
    room = os.statvfs(folder)
    if room.f_bavail * room.f_frsize < size + SPARE:
        raise CannotSave(f"{size // 1_000_000} MB do not fit on the disk of {folder}")
    return os.path.join(folder, name)


def _remove_older(path):
    """Of what we save ourselves the newest is kept: a long run may be saved many times."""
    folder, newest = os.path.split(path)
    for name in os.listdir(folder):
        if name.startswith("step-") and name != newest:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


@contextlib.contextmanager
def aside(path):
    """A path to write to, which becomes the other when all is written and on the disk."""
    temporary = os.path.join(os.path.dirname(path), f"{os.getpid()}-{os.path.basename(path)}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _remove_older(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
