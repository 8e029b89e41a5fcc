"""antifreeze, from inside a training: what a script may call when it runs under `antifreeze run`.

Everything here works without a guard as well; what only a guard can ask for does not happen then.
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
# Where to find what is loaded when it is used.
_ELSEWHERE = {
    "Guard": "_attach", "RollingBuffer": "_tools", "check_finite": "_tools", "find_batch_size": "_sizes",
    "guard": "_attach", "phase": "_tools", "splittable": "_split", "step": "_split", "wrap": "_loader",
}
# For frameworks, which are imported with them.
_MODULES = ("keras", "lightning", "transformers")


def on_checkpoint(function: Function) -> Function:
    """Has the guard call this function when it wants the run to be saved, at the end of a step. It may
    return where it saved. Without one, antifreeze saves the models and optimizers in use itself. The function that this
    returns does the same; where the script calls it, antifreeze knows of that checkpoint as well.

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


def resume(load: Optional[Callable[[str], int]] = None, **things: Any) -> int:
    """Goes on where a run was saved before it was ended: loads what is given by the names it has in the
    script, and returns the step. 0 when this run begins anew.

    >>> import antifreeze, torch
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> antifreeze.resume(model=model, optimizer=optimizer)
    0

    A script that saves in its own way (`on_checkpoint`) gives its own way to load: a function that is called
    with the path, and returns the step.
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

        registry.resumable.update({name: weakref.ref(thing) for name, thing in things.items()})
    checkpoint = checkpoints.find(kinds)
    if checkpoint is None:
        step = 0
        _warn_of_other_kinds("resume", kinds)
    elif load is not None:
        step = load(checkpoint.path)
    else:
        from ._shim import restore

        step = restore.restore(checkpoint.path, things)
    with event_log.suppress_faults("resuming"):
        from ._shim.trainer import get_trainer

        registry.has_resumed = True
        get_trainer().steps.resume_from(step)
        event_log.log_event("resumes", step=step, kinds=kinds)
    return step


def last_save(kind: Optional[str] = None) -> Optional[str]:
    """The newest checkpoint of the run that this one continues, for a framework that loads it itself; None when this
    run begins at step 0, and when no checkpoint can be loaded.

    >>> import antifreeze
    >>> antifreeze.last_save() is None
    True

    It is one that the framework can load: Lightning's own where `antifreeze.lightning` is used, and so on. `kind`
    asks for another: "torch", "lightning", "transformers", "keras", "keras-weights", or "script" for what a function
    of `on_checkpoint` has saved.
    """
    from ._shim import checkpoints, event_log

    if kind is not None and kind not in checkpoints.KINDS:
        raise ValueError(f"antifreeze.last_save: {kind!r} is no kind of checkpoint; there are {checkpoints.KINDS}")
    kinds = [kind] if kind is not None else _loadable_kinds()
    checkpoint = checkpoints.find(kinds)
    if checkpoint is None:
        _warn_of_other_kinds("last_save", kinds)
    with event_log.suppress_faults("resuming"):
        event_log.log_event("resumes", step=checkpoint.step if checkpoint is not None else 0, kinds=kinds)
    return checkpoint.path if checkpoint is not None else None


def _loadable_kinds() -> List[str]:
    """Kinds of checkpoints that the caller can load, by what the script has imported."""
    from ._shim import checkpoints, registry

    if registry.on_checkpoint is not None:
        return [checkpoints.SCRIPT]
    ours = {
        "lightning": checkpoints.LIGHTNING, "transformers": checkpoints.TRANSFORMERS, "keras": checkpoints.KERAS,
    }
    kinds = [kind for name, kind in ours.items() if f"{__name__}.{name}" in sys.modules]
    if kinds:
        return kinds
    # Without our callback. Each of these would fail with a checkpoint of another kind.
    if "lightning.pytorch" in sys.modules or "pytorch_lightning" in sys.modules:
        return [checkpoints.LIGHTNING, checkpoints.SCRIPT]
    if "transformers.trainer" in sys.modules:
        return [checkpoints.TRANSFORMERS, checkpoints.SCRIPT]
    return list(checkpoints.KINDS)


def _warn_of_other_kinds(function: str, kinds: List[str]) -> None:
    """Says why a run that was to continue begins at step 0."""
    from ._shim import checkpoints

    other = checkpoints.find(checkpoints.KINDS)
    if other is not None:
        import warnings

        warnings.warn(
            f"antifreeze.{function}: this run begins at step 0. The last checkpoint is of kind {other.kind!r} "
            f"({other.path}), and this call loads {' or '.join(map(repr, kinds))}",
            stacklevel=3,
        )
    elif os.environ.get("ANTIFREEZE_RESUME"):
        import warnings

        path = os.environ["ANTIFREEZE_RESUME"]
        warnings.warn(
            f"antifreeze.{function}: this run begins at step 0: {path} cannot be loaded, or is gone", stacklevel=3
        )


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext antifreeze`: a cell for which there is no memory ends with an exception, and the kernel lives."""
    from . import _notebook

    _notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext antifreeze`: the kernel goes unguarded."""
    from . import _attach

    _attach.leave()


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE or name in _MODULES:
        import importlib

        module = importlib.import_module("." + _ELSEWHERE.get(name, name), __name__)
        return module if name in _MODULES else getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
