"""What the callbacks for the frameworks have in common."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import _split
from ._shim import hooks, report
from ._shim.trainer import trainer


def plan(steps: Optional[float]) -> None:
    """How far the training means to go, for the verdict."""
    with report.safely("a plan"):
        if steps and 0 < steps < 1 << 53:
            report.tell("plan", steps=int(steps))


def go_on_from(step: int) -> None:
    with report.safely("resuming"):
        trainer().steps.go_on_from(step)


class Saving:
    """While it holds, the guard's call to save is answered by a function: it saves, and returns where."""

    def __init__(self) -> None:
        self._before: Any = None
        self._is_on = False

    def by(self, function: Callable[[], Optional[str]]) -> None:
        if not self._is_on:
            # What the script itself has named goes first.
            self._before, self._is_on = hooks.on_checkpoint, True
            if self._before is None:
                hooks.on_checkpoint = function

    def end(self) -> None:
        if self._is_on:
            hooks.on_checkpoint, self._is_on = self._before, False


class Splitting:
    """Steps of one model, in parts where they do not fit; see `antifreeze.step`."""

    def __init__(self, batch_norm: str) -> None:
        _split.check(batch_norm)
        self._batch_norm = batch_norm
        self._known = _split.Known()

    def take(self, forward: Callable[[Any], Any], batch: Any, backward: Callable[[Any], object]) -> Any:
        return _split.Step(forward, batch, None, backward, self._batch_norm, False, self._known).take()
