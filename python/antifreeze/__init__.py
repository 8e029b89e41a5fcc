"""antifreeze, from inside a training: what a script may call when it runs under `antifreeze run`.

Everything here works without a guard as well; what only a guard can ask for does not happen then.
"""

from __future__ import annotations

import os

from ._pressure import MemoryPressure as MemoryPressure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional, TypeVar

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
    return where it saved. Without one, antifreeze saves the models and optimizers in use itself.

    >>> import antifreeze, torch
    >>> model = torch.nn.Linear(2, 1)
    >>> @antifreeze.on_checkpoint
    ... def save():
    ...     torch.save(model.state_dict(), "last.pt")
    """
    from ._shim import hooks

    hooks.on_checkpoint = function
    return function


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
    from ._shim import report

    path = os.environ.get("ANTIFREEZE_RESUME")
    if not path:
        step = 0
    elif load is not None:
        step = load(path)
    else:
        from ._shim import restore

        step = restore.restore(path, things)
    with report.safely("resuming"):
        from ._shim.trainer import trainer

        trainer().steps.go_on_from(step)
        report.tell("resumes", step=step)
    return step


def last_save() -> Optional[str]:
    """Where the run was saved that this one goes on from; None when it begins anew. For frameworks that load
    it themselves.

    >>> import antifreeze
    >>> antifreeze.last_save() is None
    True
    """
    from ._shim import report

    path = os.environ.get("ANTIFREEZE_RESUME") or None
    with report.safely("resuming"):
        import re

        step = re.search(r"(?:step|checkpoint)-(\d+)", os.path.basename(path or ""))
        report.tell("resumes", step=int(step[1]) if step else 0)
    return path


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
