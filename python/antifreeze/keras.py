"""For Keras 3: `model.fit(…, callbacks=[antifreeze.keras.Callback()])`."""

from __future__ import annotations

import inspect
import os
from typing import Any, Optional

import keras

from . import _callbacks


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
        self._saving = _callbacks.Saving()

    def on_train_begin(self, logs: Any = None) -> None:
        steps, epochs = self.params.get("steps"), self.params.get("epochs")
        _callbacks.plan(steps * epochs if steps and epochs else None)
        if self._path is not None:
            self._saving.by(self._save, self._is_fitted)

    def on_train_end(self, logs: Any = None) -> None:
        self._saving.end()

    def _is_fitted(self):
        return _callbacks.runs(inspect.unwrap(type(self.model).fit), self.model)

    def _save(self):
        # Beside it first: one that is written half is none.
        folder, name = os.path.split(os.path.abspath(self._path))
        temporary = os.path.join(folder, f".{os.getpid()}-{name}")
        try:
            self.model.save(temporary)
            os.replace(temporary, self._path)
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
        return self._path
