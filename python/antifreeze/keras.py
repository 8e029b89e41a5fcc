"""The callback for Keras 3: `model.fit(…, callbacks=[antifreeze.keras.Callback()])`."""

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
    """Saves the whole model to the file `save` when the guard asks for it, and reports how many steps are planned.
    Without `save`, antifreeze saves the weights in its own folder.

    >>> import antifreeze.keras, keras, numpy
    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> history = model.fit(
    ...     numpy.ones((8, 4)), numpy.ones((8, 1)), verbose=0, callbacks=[antifreeze.keras.Callback(save="last.keras")]
    ... )

    A step that does not fit is not split, because Keras compiles it. `antifreeze.find_batch_size` finds a batch size
    that fits.
    """

    def __init__(self, save: Optional[str] = None) -> None:
        super().__init__()
        self._path = save
        self._owner: Optional[_callbacks.CheckpointOwner] = None

    def on_train_begin(self, logs: Any = None) -> None:
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        _callbacks.report_planned_steps(steps * epochs if steps and epochs else None)
        _callbacks.resume_from(_completed_steps(self.model))
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
        checkpoints.write_pointer(saves_folder(), checkpoints.KERAS, _completed_steps(self.model), path)
        return {"path": path, "bytes": os.path.getsize(path), "by": "framework", "kind": checkpoints.KERAS}


class _Owner(_callbacks.CheckpointOwner):
    def owns(self, trace: Any) -> bool:
        return super().owns(trace) or _is_filtered_fit(trace, self.loop, self.trainer_object)


def _is_filtered_fit(trace, fit, model):
    """Whether an exception left `model.fit`. Keras removes its own frames from tracebacks, including that of `fit`. The
    frame of its wrapper remains, which holds the function and its arguments."""
    while trace is not None:
        variables = trace.tb_frame.f_locals
        function, arguments = variables.get("fn"), variables.get("args")
        if callable(function) and inspect.unwrap(function) is fit and arguments and arguments[0] is model:
            return True
        trace = trace.tb_next
    return False


def _completed_steps(model):
    iterations = getattr(getattr(model, "optimizer", None), "iterations", 0)
    return int(iterations)


def _is_consistent(trace):
    return not holders.is_raised_in(trace, OPTIMIZER_MODULES)
