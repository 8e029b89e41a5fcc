"""What the callbacks for the frameworks have in common."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import MemoryPressure, _split
from ._memory import give_back
from ._shim import hooks, oom, report
from ._shim.trainer import trainer


def plan(steps: Optional[float]) -> None:
    """How far the training means to go, for the verdict."""
    with report.safely("a plan"):
        if steps and 0 < steps < 1 << 53:
            report.tell("plan", steps=int(steps))


def go_on_from(step: int) -> None:
    with report.safely("resuming"):
        trainer().steps.go_on_from(step)


# A training that is interrupted may end without a word to its callbacks, so that what they have set is left. Whether
# it still runs is asked when it matters.


def runs(function: Any, owner: Any = None) -> bool:
    """Whether this method is being run now, by its owner."""
    return _is_among(_stack(sys._getframe(1)), function, owner)


def ran(trace: Any, function: Any, owner: Any = None) -> bool:
    """Whether an exception came through this method of its owner."""
    return _is_among(_frames(trace), function, owner)


def _is_among(frames: Iterator[Any], function: Any, owner: Any) -> bool:
    code = getattr(function, "__code__", None)
    return any(frame.f_code is code and (owner is None or frame.f_locals.get("self") is owner) for frame in frames)


def _stack(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _frames(trace: Any) -> Iterator[Any]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


class Owner:
    """A callback that saves in its framework's own kind. What the framework trains is saved by it and by nothing else,
    also when an error ends the training and after it has ended well; until something else is trained."""

    def __init__(
        self,
        kind: str,
        loop: Any,
        save: Callable[[], Dict[str, Any]],
        is_whole: Callable[[Any], bool],
        trainer_object: Any = None,
        saves_at_step_end: bool = False,
    ) -> None:
        """`loop` is the method of the framework that trains, of `trainer_object`; `save` returns where, as the shim's
        own does; `is_whole` is asked whether an error has left the model between two steps."""
        self.kind = kind
        # The shim calls `save` where it sees a step end; otherwise the callback calls `Trainer.serve` itself.
        self.saves_at_step_end = saves_at_step_end
        self.loop, self.trainer_object = loop, trainer_object
        self._save, self._is_whole = save, is_whole
        self._ended_at: Optional[int] = None

    def begin(self) -> None:
        """Makes this the owner from now on, in place of one that another training has left."""
        self._ended_at = None
        hooks.owner = self

    def end(self) -> None:
        """The training is over. If the script runs out of memory later, the model is still saved in this kind."""
        self._ended_at = trainer().steps.count

    def forget(self) -> None:
        if hooks.owner is self:
            hooks.owner = None

    def is_running(self) -> bool:
        return runs(self.loop, self.trainer_object)

    def owns(self, trace: Any) -> bool:
        """Whether the error ended this training, or came after it before anything else was trained."""
        return ran(trace, self.loop, self.trainer_object) or trainer().steps.count == self._ended_at

    def is_whole(self, trace: Any) -> bool:
        return self._is_whole(trace)

    def save(self, frame: Any = None) -> Dict[str, Any]:
        from ._shim.files import saved_by_script

        # A function that the script gave to `on_checkpoint` has precedence.
        by_script: Optional[Dict[str, Any]] = saved_by_script()
        return self._save() if by_script is None else by_script


class Hooks:
    """Functions in the place of an object's own, until they are taken off."""

    def __init__(self) -> None:
        self._put: List[Tuple[Any, str, Any, Any]] = []

    def put(self, thing: Any, name: str, function: Any) -> None:
        self._put.append((thing, name, function, vars(thing).get(name, self)))
        setattr(thing, name, function)

    def off(self) -> None:
        while self._put:
            thing, name, function, before = self._put.pop()
            if vars(thing).get(name) is not function:
                # Somebody else has put theirs there since.
                continue
            if before is self:
                delattr(thing, name)
            else:
                setattr(thing, name, before)


class Aside:
    """Gradients that were there before others are made: an attempt that fails would leave a part of its own in them."""

    def __init__(self, parameters: List[Any]) -> None:
        self._parameters = [(parameter, parameter.grad) for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None

    def give_back(self) -> None:
        for parameter, gradient in self._parameters:
            parameter.grad = gradient

    def add(self) -> None:
        """Those that were made to them."""
        for parameter, gradient in self._parameters:
            if parameter.grad is None:
                parameter.grad = gradient
            elif gradient is not None:
                parameter.grad = gradient.add_(parameter.grad)


class Splitting:
    """Steps of one model: as the framework takes them, until one does not fit; from then on in parts where they must,
    see `antifreeze.step`."""

    def __init__(self, batch_norm: str) -> None:
        _split.check(batch_norm)
        self._batch_norm = batch_norm
        self._known = _split.Known()
        self.begin()
        self._error: Tuple[Any, str] = (MemoryError, "no memory")

    def begin(self) -> None:
        """Another training."""
        self._is_needed = False
        self._buffers: Optional[List[Any]] = None
        # Of them, those that a step has changed; None before the first.
        self._changing: Optional[Set[int]] = None

    def is_needed(self, batch: Any) -> bool:
        """Whether there is no use in trying it whole."""
        return self._is_needed and not isinstance(_length(batch), str)

    def before(self, module: Any) -> Before:
        if self._buffers is None:
            self._buffers = list(module.buffers())
        return Before(self._buffers, self._changing)

    def went_well(self, before: Before) -> None:
        self._changing = (self._changing or set()) | before.changed()

    def tries(self, before: Before, take: Callable[[], Any]) -> Tuple[bool, Any]:
        """Whether it went well, and what came of it. If not, all is as it was before."""
        try:
            return True, take()
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Its words only: the error itself leads to all that did not fit.
            self._error = type(error), str(error)
        self._is_needed = True
        before.restore()
        return False, None

    def take(self, forward: Callable[[Any], Any], batch: Any, backward: Callable[[Any], object]) -> Any:
        """In parts."""
        give_back()
        length = _length(batch)
        if isinstance(length, str):
            raise self.refused(length)
        return _split.Step(forward, batch, None, backward, self._batch_norm, False, self._known).take()

    def refused(self, reason: str) -> BaseException:
        error: BaseException = oom.again(*self._error, f"antifreeze did not take it in parts: {reason}")
        return error


class Before:
    """What a step finds: random numbers, and the buffers that steps change."""

    def __init__(self, buffers: List[Any], changing: Optional[Set[int]]) -> None:
        self._torch = sys.modules["torch"]
        self._random = _split.random_state(self._torch)
        self._buffers = [
            (buffer, buffer._version, buffer.detach().clone() if changing is None or id(buffer) in changing else None)
            for buffer in buffers
        ]

    def changed(self) -> Set[int]:
        return {id(buffer) for buffer, version, _ in self._buffers if buffer._version != version}

    def restore(self) -> None:
        with self._torch.no_grad():
            for buffer, version, kept in self._buffers:
                if buffer._version != version and kept is not None:
                    buffer.copy_(kept)
        _split.set_random_state(self._torch, self._random)


def _length(batch: Any) -> Any:
    """Or why there is none."""
    try:
        return _split.length(batch)
    except ValueError as error:
        return str(error)
