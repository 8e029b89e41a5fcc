"""What the callbacks for Lightning, Hugging Face's Trainer and Keras share."""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import MemoryPressure, _split
from ._memory import free_unused_memory
from ._shim import event_log, oom, registry
from ._shim.trainer import get_trainer


def report_planned_steps(steps: Optional[float]) -> None:
    """Reports how many steps the training is meant to make, for the verdict."""
    with event_log.suppress_faults("reporting the planned steps"):
        if steps and 0 < steps < 1 << 53:
            event_log.log_event("plan", steps=int(steps))


def resume_from(step: int) -> None:
    with event_log.suppress_faults("resuming"):
        get_trainer().steps.resume_from(step)


# An interrupted training may end without calling its callbacks, so its hooks may remain. Whether it still runs is
# therefore read from the stack.


def is_on_stack(function: Any, owner: Any = None) -> bool:
    """Whether this method of `owner` is running now."""
    return _has_frame(_stack_frames(sys._getframe(1)), function, owner)


def is_in_traceback(trace: Any, function: Any, owner: Any = None) -> bool:
    """Whether an exception passed through this method of `owner`."""
    return _has_frame(_traceback_frames(trace), function, owner)


def _has_frame(frames: Iterator[Any], function: Any, owner: Any) -> bool:
    code = getattr(function, "__code__", None)
    return any(frame.f_code is code and (owner is None or frame.f_locals.get("self") is owner) for frame in frames)


def _stack_frames(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _traceback_frames(trace: Any) -> Iterator[Any]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


class CheckpointOwner:
    """A callback that saves in its framework's own format. The shim then writes no checkpoint of its own kind, neither
    when an error ends the training nor after it has ended, until something else is trained."""

    def __init__(
        self,
        kind: str,
        loop: Any,
        save: Callable[[], Dict[str, Any]],
        is_consistent: Callable[[Any], bool],
        trainer_object: Any = None,
        saves_at_step_end: bool = False,
    ) -> None:
        """`loop` is the method of `trainer_object` that trains. `save` returns the fields of a `saved` event.
        `is_consistent` takes a traceback and returns whether the error left the model between two steps."""
        self.kind = kind
        # The shim calls `save` at the end of a step; otherwise the callback calls `Trainer.serve_requests`.
        self.saves_at_step_end = saves_at_step_end
        self.loop, self.trainer_object = loop, trainer_object
        self._save, self._is_consistent = save, is_consistent
        self._ended_at: Optional[int] = None

    def begin(self) -> None:
        """Replaces the owner that an earlier training left."""
        self._ended_at = None
        registry.checkpoint_owner = self

    def end(self) -> None:
        """The training is over. If the script runs out of memory later, the model is still saved in this format."""
        self._ended_at = get_trainer().steps.count

    def forget(self) -> None:
        if registry.checkpoint_owner is self:
            registry.checkpoint_owner = None

    def is_running(self) -> bool:
        return is_on_stack(self.loop, self.trainer_object)

    def owns(self, trace: Any) -> bool:
        """Whether the error ended this training, or came after it before anything else was trained."""
        return is_in_traceback(trace, self.loop, self.trainer_object) or get_trainer().steps.count == self._ended_at

    def is_consistent(self, trace: Any) -> bool:
        return self._is_consistent(trace)

    def save(self, frame: Any = None) -> Dict[str, Any]:
        from ._shim.save_path import call_on_checkpoint

        # A function that the script gave to `on_checkpoint` has precedence.
        by_script: Optional[Dict[str, Any]] = call_on_checkpoint()
        return self._save() if by_script is None else by_script


class MethodPatches:
    """Replaces attributes of objects until `restore` is called."""

    def __init__(self) -> None:
        self._patches: List[Tuple[Any, str, Any, Any]] = []

    def patch(self, target: Any, name: str, function: Any) -> None:
        self._patches.append((target, name, function, vars(target).get(name, self)))
        setattr(target, name, function)

    def restore(self) -> None:
        while self._patches:
            target, name, function, before = self._patches.pop()
            if vars(target).get(name) is not function:
                # Something else has patched it since.
                continue
            if before is self:
                delattr(target, name)
            else:
                setattr(target, name, before)


class GradientStash:
    """Takes the gradients off their parameters, so that a failed attempt cannot add to them."""

    def __init__(self, parameters: List[Any]) -> None:
        self._parameters = [(parameter, parameter.grad) for parameter in parameters]
        for parameter in parameters:
            parameter.grad = None

    def restore(self) -> None:
        for parameter, gradient in self._parameters:
            parameter.grad = gradient

    def accumulate(self) -> None:
        """Adds the new gradients to the stashed ones."""
        for parameter, gradient in self._parameters:
            if parameter.grad is None:
                parameter.grad = gradient
            elif gradient is not None:
                parameter.grad = gradient.add_(parameter.grad)


class Splitter:
    """Runs the steps of one model as the framework does, until one does not fit. Later steps are split if they must be,
    as by `antifreeze.step`."""

    def __init__(self, batch_norm: str) -> None:
        _split.check_batch_norm(batch_norm)
        self._batch_norm = batch_norm
        self._cache = _split.SplitCache()
        self.begin()
        # Type and message of the last out-of-memory error.
        self._error: Tuple[Any, str] = (MemoryError, "no memory")

    def begin(self) -> None:
        """Resets the splitter for a new training."""
        self._must_split = False
        self._buffers: Optional[List[Any]] = None
        # Ids of the buffers that steps change; None before the first step.
        self._changing: Optional[Set[int]] = None

    def must_split(self, batch: Any) -> bool:
        """Whether there is no point in trying the whole batch."""
        return self._must_split and not isinstance(_length_or_reason(batch), str)

    def snapshot(self, module: Any) -> BufferSnapshot:
        if self._buffers is None:
            self._buffers = list(module.buffers())
        return BufferSnapshot(self._buffers, self._changing)

    def record_changes(self, snapshot: BufferSnapshot) -> None:
        self._changing = (self._changing or set()) | snapshot.changed_ids()

    def try_whole(self, snapshot: BufferSnapshot, run: Callable[[], Any]) -> Tuple[bool, Any]:
        """Returns (True, the result). If `run` runs out of memory, restores the snapshot and returns (False, None)."""
        try:
            return True, run()
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Keep the message only: the error's traceback holds everything that did not fit.
            self._error = type(error), str(error)
        self._must_split = True
        snapshot.restore()
        return False, None

    def run_split(self, forward: Callable[[Any], Any], batch: Any, backward: Callable[[Any], object]) -> Any:
        free_unused_memory()
        length = _length_or_reason(batch)
        if isinstance(length, str):
            raise self.refused(length)
        return _split.SplitStep(forward, batch, None, backward, self._batch_norm, False, self._cache).run()

    def refused(self, reason: str) -> BaseException:
        error: BaseException = oom.with_reason(*self._error, f"antifreeze did not split it: {reason}")
        return error


class BufferSnapshot:
    """The random states, and copies of the buffers that steps change."""

    def __init__(self, buffers: List[Any], changing: Optional[Set[int]]) -> None:
        self._torch = sys.modules["torch"]
        self._random = _split.random_state(self._torch)
        self._buffers = [
            (buffer, buffer._version, buffer.detach().clone() if changing is None or id(buffer) in changing else None)
            for buffer in buffers
        ]

    def changed_ids(self) -> Set[int]:
        return {id(buffer) for buffer, version, _ in self._buffers if buffer._version != version}

    def restore(self) -> None:
        with self._torch.no_grad():
            for buffer, version, saved in self._buffers:
                if buffer._version != version and saved is not None:
                    buffer.copy_(saved)
        _split.set_random_state(self._torch, self._random)


def _length_or_reason(batch: Any) -> Any:
    """Returns the number of items, or why there is none as a string."""
    try:
        return _split.length(batch)
    except ValueError as error:
        return str(error)
