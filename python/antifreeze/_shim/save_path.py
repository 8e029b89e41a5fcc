"""Where the shim saves, and what the script saves in its place."""

import contextlib
import inspect
import operator
import os

from . import checkpoints, event_log, registry
from .trainer import CannotSave, get_trainer

# Kept free on the disk beside what is written: as much again, and a little for the record of the run; at most `MAX_SPARE_BYTES`.
MAX_SPARE_BYTES, RECORD_SPARE_BYTES = 64 << 20, 1 << 20
# Variables that hold the step, in scripts whose steps are not seen.
_STEP_NAMES = ("step", "global_step", "steps", "iteration", "it", "iterations")


def call_on_checkpoint():
    """By the function that the script has named for it. None when it has not."""
    if registry.on_checkpoint is None:
        return None
    path = registry.on_checkpoint()
    step = script_step()
    saved = {"path": None, "by": "script", "kind": checkpoints.SCRIPT, "step": step}
    if not isinstance(path, (str, os.PathLike)):
        return saved
    path = os.path.abspath(path)
    try:
        checkpoints.point(saves_folder(), checkpoints.SCRIPT, step, path)
    except (checkpoints.Damaged, OSError) as reason:
        raise CannotSave(f"on_checkpoint returned {path}, which is no checkpoint: {reason}") from None
    return {**saved, "path": path}


def save_and_record(function):
    """Has the script save without being asked to, as it does now and then itself, and notes where. Returns what the
    function does; it is not interrupted meanwhile."""
    steps = get_trainer().steps
    steps.saving_begins()
    try:
        path = function()
    finally:
        steps.saving_ends()
    if isinstance(path, (str, os.PathLike)) and os.path.exists(path):
        with event_log.suppress_faults("a checkpoint of the script"), contextlib.suppress(OSError):
            checkpoints.point(saves_folder(), checkpoints.SCRIPT, script_step(), path, reads_back=False)
            get_trainer().record_script_save()
    return path


def script_step():
    """The step that a checkpoint of the script is recorded under. Where steps are not seen, it is that of a variable
    that its function saves, by its name; without one, it is only known that the training is further than it began."""
    steps = get_trainer().steps
    if steps.has_steps():
        return steps.completed_iterations()
    step = read_step_variable()
    return steps.count + 1 if step is None else step


def read_step_variable():
    """The value of a variable that `on_checkpoint` uses and whose name says that it is the step. None without one."""
    function = inspect.unwrap(registry.on_checkpoint)
    try:
        variables = inspect.getclosurevars(function)
    except (TypeError, ValueError):
        return None
    for name in _STEP_NAMES:
        for scope in (variables.nonlocals, variables.globals):
            value = scope.get(name)
            with contextlib.suppress(TypeError):
                if value is not None and not isinstance(value, bool) and operator.index(value) >= 0:
                    return operator.index(value)
    return None


def saves_folder():
    """The run's saves folder; None without a guard."""
    return os.environ.get("ANTIFREEZE_SAVES")


def write_checkpoint(kind, step, size, writer):
    """Writes a checkpoint of so many bytes, about, to the run's saves folder."""
    saves = saves_folder()
    if not saves:
        raise CannotSave("there is no folder for it")
    os.makedirs(saves, exist_ok=True)
    room = os.statvfs(saves)
    free, needed = room.f_bavail * room.f_frsize, size + min(size + RECORD_SPARE_BYTES, MAX_SPARE_BYTES)
    if free < needed:
        raise CannotSave(
            f"a checkpoint of {_format_bytes(size)} needs {_format_bytes(needed)} free on the disk of {saves}, which has {_format_bytes(free)}"
        )
    path = checkpoints.write(saves, kind, step, writer)
    return {"path": path, "bytes": os.path.getsize(path), "by": "antifreeze", "kind": kind}


def _format_bytes(number):
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    return f"{number / 1e6:.1f} MB" if number < 1e7 else f"{number // 10**6} MB"
