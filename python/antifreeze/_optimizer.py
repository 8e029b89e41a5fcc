"""Runs an optimizer's step. If it runs out of memory, the optimizer's state is restored and the step is tried again."""

from __future__ import annotations

from typing import Any, List, Tuple

from . import MemoryPressure
from ._memory import free_unused_memory
from ._shim import oom


def check_optimizer(optimizer: Any, backward: Any) -> None:
    if optimizer is not None and backward is not None and not callable(optimizer):
        raise TypeError(
            "with backward=, which may scale gradients, optimizer= must be a function that runs the step, such as "
            "optimizer.step, or lambda: (scaler.step(optimizer), scaler.update())"
        )


def run_optimizer_step(optimizer: Any) -> None:
    """`optimizer` is an optimizer, or a function that runs its step."""
    if not hasattr(optimizer, "step"):
        held = getattr(optimizer, "__self__", None)
        if getattr(optimizer, "__name__", "") != "step" or not hasattr(held, "param_groups"):
            return _run_step_function(optimizer)
        optimizer = held
    refusals: List[Tuple[type, str]] = []
    for _ in range(2):
        snapshot = _OptimizerSnapshot(optimizer)
        try:
            optimizer.step()
            return
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Keep the message only: the error's traceback holds everything that did not fit.
            refusals.append((type(error), str(error)))
        if not snapshot.restore():
            reason = "the optimizer had changed part of the model: continue from a checkpoint"
            raise oom.with_reason(*refusals[-1], reason)
        free_unused_memory()
        _disable_foreach(optimizer)
    raise oom.with_reason(*refusals[-1], "the optimizer's step does not fit; nothing was changed")


def _run_step_function(function):
    try:
        function()
        return
    except Exception as error:
        if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
            raise
        refusal = type(error), str(error)
    raise oom.with_reason(*refusal, "the optimizer's step does not fit; the model may have been changed in part")


def _disable_foreach(optimizer):
    """Updates one parameter at a time. `foreach` is faster, but allocates as much memory as all parameters have."""
    for group in optimizer.param_groups:
        if group.get("foreach", False) is None:
            group["foreach"] = False


class _OptimizerSnapshot:
    """Restores an optimizer's state, or detects that the step already changed parameters."""

    def __init__(self, optimizer):
        self._state = optimizer.state
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        # An optimizer creates its state in its first step, before it changes anything.
        self._keys = {parameter: set(self._state[parameter]) for parameter in parameters if parameter in self._state}
        values = [value for parameter in self._keys for value in self._state[parameter].values()]
        tensors = parameters + [value for value in values if hasattr(value, "_version")]
        self._versions = [(tensor, tensor._version) for tensor in tensors]

    def restore(self) -> bool:
        """Removes state that the failed step created. Returns False if a tensor was changed already."""
        if any(tensor._version != version for tensor, version in self._versions):
            return False
        for parameter, state in list(self._state.items()):
            if parameter not in self._keys:
                del self._state[parameter]
                continue
            for key in set(state) - self._keys[parameter]:
                del state[key]
        return True
