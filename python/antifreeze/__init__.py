"""antifreeze keeps a computer usable and a training alive. Functions that a training script may call.

Everything here also works without `antifreeze run`: there is only no guard then that asks for a save or a stop.
"""

from __future__ import annotations

import os
import sys

from ._pressure import MemoryPressure as MemoryPressure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, List, Optional, TypeVar

    from . import keras as keras, lightning as lightning, transformers as transformers
    from ._attach import Guard as Guard, guard as guard
    from ._loader import wrap as wrap
    from ._sizes import find_batch_size as find_batch_size
    from ._split import splittable as splittable, step as step
    from ._tools import RollingBuffer as RollingBuffer, check_finite as check_finite, phase as phase

    Function = TypeVar("Function", bound=Callable[[], Any])

__all__ = [
    "Guard", "MemoryPressure", "RollingBuffer", "check_finite", "find_batch_size", "guard", "last_save",
    "on_checkpoint", "phase", "resume", "splittable", "step", "wrap",
]
# Name → module that defines it. These modules are imported when the name is first used.
_LAZY_NAMES = {
    "Guard": "_attach", "RollingBuffer": "_tools", "check_finite": "_tools", "find_batch_size": "_sizes",
    "guard": "_attach", "phase": "_tools", "splittable": "_split", "step": "_split", "wrap": "_loader",
}
# Modules that import their framework.
_LAZY_MODULES = ("keras", "lightning", "transformers")


def on_checkpoint(function: Function) -> Function:
    """Decorator for a function that saves the training. antifreeze calls it at the end of a step when the run must be
    saved, instead of saving the models and optimizers itself. The function may return the path of the checkpoint. When
    the script calls it, antifreeze records that checkpoint too.

    >>> import antifreeze, torch
    >>> model = torch.nn.Linear(2, 1)
    >>> @antifreeze.on_checkpoint
    ... def save():
    ...     torch.save(model.state_dict(), "last.pt")
    """
    import functools

    from ._shim import registry

    @functools.wraps(function)
    def save() -> Any:
        if not os.environ.get("ANTIFREEZE_SAVES"):
            return function()
        from ._shim import save_path

        return save_path.save_and_record(function)

    registry.on_checkpoint = function
    return save  # type: ignore[return-value]


def resume(load: Optional[Callable[[str], int]] = None, **objects: Any) -> int:
    """Loads the checkpoint of the run that this one continues into the given objects, and returns its step. Returns 0
    if there is no run to continue.

    >>> import antifreeze, torch
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> antifreeze.resume(model=model, optimizer=optimizer)
    0

    Pass the objects under the names that they have in the script. A script that saves with its own function
    (`on_checkpoint`) passes `load`, which is called with the path and returns the step.

    Raises KeyError if the checkpoint has no object of a given name, and ValueError if antifreeze did not write it.
    Warns if the newest checkpoint is of a kind that this call cannot load.
    """
    from ._shim import checkpoints, event_log, registry

    if load is None:
        kinds = [checkpoints.TORCH, checkpoints.KERAS_WEIGHTS]
    elif registry.on_checkpoint is not None:
        kinds = [checkpoints.SCRIPT]
    else:
        kinds = list(checkpoints.KINDS)
    with event_log.suppress_faults("resuming"):
        import weakref

        registry.resumable.update({name: weakref.ref(value) for name, value in objects.items()})
    checkpoint = checkpoints.find(kinds)
    if checkpoint is None:
        step = 0
        _warn_of_other_kinds("resume", kinds)
    elif load is not None:
        step = load(checkpoint.path)
    else:
        from ._shim import restore

        step = restore.restore_training(checkpoint.path, objects)
    with event_log.suppress_faults("resuming"):
        from ._shim.trainer import get_trainer

        registry.has_resumed = True
        get_trainer().steps.resume_from(step)
        event_log.log_event("resumes", step=step, kinds=kinds)
    return step


def last_save(kind: Optional[str] = None) -> Optional[str]:
    """Returns the path of the newest checkpoint of the run that this one continues, for a framework that loads it
    itself. Returns None if this run begins at step 0, or if no checkpoint can be loaded.

    >>> import antifreeze
    >>> antifreeze.last_save() is None
    True

    The checkpoint is of the kind that the imported framework loads. `kind` selects another one: "torch", "lightning",
    "transformers", "keras", "keras-weights", or "script" for what an `on_checkpoint` function saved.

    Raises ValueError if `kind` is none of these. Warns if the newest checkpoint is of another kind.
    """
    from ._shim import checkpoints, event_log

    if kind is not None and kind not in checkpoints.KINDS:
        raise ValueError(f"antifreeze.last_save: unknown kind {kind!r}; use one of {', '.join(checkpoints.KINDS)}")
    kinds = [kind] if kind is not None else _loadable_kinds()
    checkpoint = checkpoints.find(kinds)
    if checkpoint is None:
        _warn_of_other_kinds("last_save", kinds)
    with event_log.suppress_faults("resuming"):
        event_log.log_event("resumes", step=checkpoint.step if checkpoint is not None else 0, kinds=kinds)
    return checkpoint.path if checkpoint is not None else None


def _loadable_kinds() -> List[str]:
    """Returns the kinds of checkpoints that the caller can load, judged by the imported modules."""
    from ._shim import checkpoints, registry

    if registry.on_checkpoint is not None:
        return [checkpoints.SCRIPT]
    callbacks = {
        "lightning": checkpoints.LIGHTNING, "transformers": checkpoints.TRANSFORMERS, "keras": checkpoints.KERAS,
    }
    kinds = [kind for name, kind in callbacks.items() if f"{__name__}.{name}" in sys.modules]
    if kinds:
        return kinds
    # A framework without our callback fails on a checkpoint of another kind.
    if "lightning.pytorch" in sys.modules or "pytorch_lightning" in sys.modules:
        return [checkpoints.LIGHTNING, checkpoints.SCRIPT]
    if "transformers.trainer" in sys.modules:
        return [checkpoints.TRANSFORMERS, checkpoints.SCRIPT]
    return list(checkpoints.KINDS)


def _warn_of_other_kinds(function: str, kinds: List[str]) -> None:
    """Warns with the reason why a run that should continue begins at step 0."""
    from ._shim import checkpoints

    other = checkpoints.find(checkpoints.KINDS)
    if other is not None:
        import warnings

        warnings.warn(
            f"antifreeze.{function}: this run begins at step 0. The newest checkpoint ({other.path}) is of kind "
            f"{other.kind!r}, but this call loads {' or '.join(map(repr, kinds))}",
            stacklevel=3,
        )
    elif os.environ.get("ANTIFREEZE_RESUME"):
        import warnings

        path = os.environ["ANTIFREEZE_RESUME"]
        warnings.warn(
            f"antifreeze.{function}: this run begins at step 0: {path} does not exist or cannot be loaded", stacklevel=3
        )


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext antifreeze`: a cell that runs out of memory ends with an exception, and the kernel survives."""
    from . import _notebook

    _notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext antifreeze`: stops the guard of the kernel."""
    from . import _attach

    _attach.stop_guard()


def __getattr__(name: str) -> Any:
    if name in _LAZY_NAMES or name in _LAZY_MODULES:
        import importlib

        module = importlib.import_module("." + _LAZY_NAMES.get(name, name), __name__)
        return module if name in _LAZY_MODULES else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
