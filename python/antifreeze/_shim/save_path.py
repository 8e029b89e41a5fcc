"""Decides where a run is saved: by the script's own function, or in the run's saves folder."""

import contextlib
import inspect
import operator
import os

from . import checkpoints, event_log, registry
from .trainer import CannotSave, get_trainer

# Space that must stay free besides the checkpoint: its size and a little for the flight record, up to a limit.
MAX_SPARE_BYTES, RECORD_SPARE_BYTES = 64 << 20, 1 << 20
# Names of variables that hold the step, for scripts whose steps are not detected.
_STEP_NAMES = ("step", "global_step", "steps", "iteration", "it", "iterations")


def call_on_checkpoint():
    """Saves by the script's `on_checkpoint` function. Returns the fields of a `saved` event, or None without one."""
    if registry.on_checkpoint is None:
        return None
    path = registry.on_checkpoint()
    step = script_step()
    saved = {"path": None, "by": "script", "kind": checkpoints.SCRIPT, "step": step}
    if not isinstance(path, (str, os.PathLike)):
        return saved
    path = os.path.abspath(path)
    try:
        checkpoints.write_pointer(saves_folder(), checkpoints.SCRIPT, step, path)
    except (checkpoints.Damaged, OSError) as reason:
        raise CannotSave(f"on_checkpoint returned {path}, which is not a valid checkpoint: {reason}") from None
    return {**saved, "path": path}


def save_and_record(function):
    """Runs the script's function when the script itself calls it, and records the checkpoint. The function is not
    interrupted. Returns its result."""
    steps = get_trainer().steps
    steps.saving_begins()
    try:
        path = function()
    finally:
        steps.saving_ends()
    if isinstance(path, (str, os.PathLike)) and os.path.exists(path):
        with event_log.suppress_faults("a checkpoint of the script"), contextlib.suppress(OSError):
            checkpoints.write_pointer(saves_folder(), checkpoints.SCRIPT, script_step(), path, reads_back=False)
            get_trainer().record_script_save()
    return path


def script_step():
    """Returns the step under which a checkpoint of the script is recorded. If steps are not detected, it is read from a
    variable of the function; without one, it is one more than the step that the run began at."""
    steps = get_trainer().steps
    if steps.has_steps():
        return steps.completed_iterations()
    step = read_step_variable()
    return steps.count + 1 if step is None else step


def read_step_variable():
    """Returns the value of a variable that `on_checkpoint` uses and that is named like a step, or None."""
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
    """Returns the run's saves folder, or None without a guard."""
    return os.environ.get("ANTIFREEZE_SAVES")


def write_checkpoint(kind, step, size, writer):
    """Writes a checkpoint of about `size` bytes to the run's saves folder. Returns the fields of a `saved` event."""
    saves = saves_folder()
    if not saves:
        raise CannotSave("the run has no saves folder")
    os.makedirs(saves, exist_ok=True)
    disk = os.statvfs(saves)
    free, needed = disk.f_bavail * disk.f_frsize, size + min(size + RECORD_SPARE_BYTES, MAX_SPARE_BYTES)
    if free < needed:
        raise CannotSave(
            f"a checkpoint of {_format_bytes(size)} needs {_format_bytes(needed)} free on the disk of {saves}, "
            f"which has {_format_bytes(free)}"
        )
    path = checkpoints.write(saves, kind, step, writer)
    return {"path": path, "bytes": os.path.getsize(path), "by": "antifreeze", "kind": kind}


def _format_bytes(number):
    if number >= 1e9:
        return f"{number / 1e9:.1f} GB"
    return f"{number / 1e6:.1f} MB" if number < 1e7 else f"{number // 10**6} MB"
