"""The step of an optimizer that finds no memory: nothing is changed by it, and it is tried once more."""

from __future__ import annotations

from typing import Any, List, Tuple

from . import MemoryPressure
from ._memory import give_back
from ._shim import oom


def check_optimizer(optimizer: Any, backward: Any) -> None:
    if optimizer is not None and backward is not None and not callable(optimizer):
        raise TypeError(
            "with backward=, which may scale gradients, optimizer= is a function that takes the step, such as "
            "optimizer.step, or lambda: (scaler.step(optimizer), scaler.update())"
        )


def take_step(optimizer: Any) -> None:
    """By an optimizer, or a function that takes the step."""
    if not hasattr(optimizer, "step"):
        held = getattr(optimizer, "__self__", None)
        if getattr(optimizer, "__name__", "") != "step" or not hasattr(held, "param_groups"):
            return _call(optimizer)
        optimizer = held
    refusals: List[Tuple[type, str]] = []
    for _ in range(2):
        before = _Before(optimizer)
        try:
            optimizer.step()
            return
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Its words only: the error itself leads to all that did not fit.
            refusals.append((type(error), str(error)))
        if not before.restore():
            raise oom.again(*refusals[-1], "the optimizer had changed a part of the model: go on from a save")
        give_back()
        _take_one_at_a_time(optimizer)
    raise oom.again(*refusals[-1], "the optimizer's step does not fit; nothing was changed")


def _call(function):
    try:
        function()
        return
    except Exception as error:
        if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
            raise
        refusal = type(error), str(error)
    raise oom.again(*refusal, "the optimizer's step does not fit; it is not known what it has changed")


def _take_one_at_a_time(optimizer):
    """All parameters at once are quicker, and need as much memory again as they have, for a moment."""
    for group in optimizer.param_groups:
        if group.get("foreach", False) is None:
            group["foreach"] = False


class _Before:
    """What a step finds, and how to see that it has changed nothing of it."""

    def __init__(self, optimizer):
        self._state = optimizer.state
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        # An optimizer makes its state in its first step, and only then changes anything.
        self._keys = {parameter: set(self._state[parameter]) for parameter in parameters if parameter in self._state}
        kept = [value for parameter in self._keys for value in self._state[parameter].values()]
        tensors = parameters + [value for value in kept if hasattr(value, "_version")]
        self._versions = [(tensor, tensor._version) for tensor in tensors]

    def restore(self) -> bool:
        """False if it cannot be done: something was written over."""
        if any(tensor._version != version for tensor, version in self._versions):
            return False
        for parameter, state in list(self._state.items()):
            if parameter not in self._keys:
                del self._state[parameter]
                continue
            for key in set(state) - self._keys[parameter]:
                del state[key]
        return True
