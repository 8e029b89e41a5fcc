"""For Keras 3: `model.fit(…, callbacks=[antifreeze.keras.Callback()])`."""

from __future__ import annotations

import inspect
import os
from typing import Any, Optional

import keras

from . import _callbacks
from ._shim import checkpoints, holders
from ._shim.save_path import saves_folder
from ._shim.trainer import OPTIMIZER_MODULES


class Callback(keras.callbacks.Callback):
    """Tells the guard how far the training means to go, and saves the whole model to `save` (a file of Keras) when the
    guard asks for it; without `save`, antifreeze keeps weights and optimizer itself.

    >>> import antifreeze.keras, keras, numpy
    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> history = model.fit(
    ...     numpy.ones((8, 4)), numpy.ones((8, 1)), verbose=0, callbacks=[antifreeze.keras.Callback(save="last.keras")]
    ... )

    What Keras does in a step is compiled, or runs where an exception does not reach it: a step that does not fit cannot
    be taken in parts. `antifreeze.find_batch_size` finds a batch that fits.
    """

    def __init__(self, save: Optional[str] = None) -> None:
        super().__init__()
        self._path = save
        self._owner: Optional[_callbacks.CheckpointOwner] = None

    def on_train_begin(self, logs: Any = None) -> None:
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        _callbacks.report_planned_steps(steps * epochs if steps and epochs else None)
        _callbacks.resume_from(_steps_made(self.model))
        if self._path is not None:
            self._owner = _Owner(
                checkpoints.KERAS, inspect.unwrap(type(self.model).fit), self._save, _is_consistent, self.model,
                saves_at_step_end=True,
            )
            self._owner.begin()

    def on_train_end(self, logs: Any = None) -> None:
        if self._owner is not None:
            self._owner.end()

    def _save(self):
        path = os.path.abspath(self._path)
        folder, name = os.path.split(path)
        temporary = os.path.join(folder, f".{os.getpid()}-{name}")
        checkpoints.replace(path, checkpoints.KERAS, self.model.save, temporary)
        checkpoints.point(saves_folder(), checkpoints.KERAS, _steps_made(self.model), path)
        return {"path": path, "bytes": os.path.getsize(path), "by": "framework", "kind": checkpoints.KERAS}


class _Owner(_callbacks.CheckpointOwner):
    def owns(self, trace: Any) -> bool:
        return super().owns(trace) or _is_filtered_fit(trace, self.loop, self.trainer_object)


def _is_filtered_fit(trace, fit, model):
    """Whether an exception left `model.fit`. Keras removes its own frames from tracebacks, that of `fit` among them;
    what remains is the frame of its wrapper, which holds the function and its arguments."""
    while trace is not None:
        variables = trace.tb_frame.f_locals
        function, arguments = variables.get("fn"), variables.get("args")
        if callable(function) and inspect.unwrap(function) is fit and arguments and arguments[0] is model:
            return True
        trace = trace.tb_next
    return False


def _steps_made(model):
    iterations = getattr(getattr(model, "optimizer", None), "iterations", 0)
    return int(iterations)


def _is_consistent(trace):
    return not holders.passes_through(trace, OPTIMIZER_MODULES)
