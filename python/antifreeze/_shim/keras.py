"""Keras 3 and what TensorFlow brings of it: `fit`, through the list of callbacks that every `fit` has.

What happens within a step is compiled there, so that phases are unknown. A step may be several batches
(`steps_per_execution`); batches are counted.
"""

import sys

from . import events, report
from .numbers import Numbers
from .trainer import Trainer

# Batches between two looks at the loss, which has to be waited for.
STRIDE = 16

_is_watched = False


def attend():
    """Once it is all there: TensorFlow may bring Keras before it has come itself."""
    global _is_watched
    keras = sys.modules.get("keras")
    callbacks = sys.modules.get("keras.src.callbacks.callback_list")
    if _is_watched or keras is None or callbacks is None:
        return
    _is_watched = True
    watch = Watch(keras)
    kind = callbacks.CallbackList
    events.watch(kind, "on_train_begin", watch.training_begins, first=True)
    events.watch(kind, "on_epoch_begin", watch.epoch_begins)
    events.watch(kind, "on_train_batch_end", watch.batch_ends, first=True)
    events.watch(kind, "on_test_begin", watch.evaluation_begins)
    events.watch(kind, "on_test_end", watch.evaluation_ends)


class Watch:
    def __init__(self, keras):
        self._keras = keras
        self._trainer = None
        self._numbers = Numbers()
        self._model = None
        self._batch = -1

    def training_begins(self, callbacks=None):
        self._model = getattr(callbacks, "model", None) or getattr(callbacks, "_model", None)
        if self._trainer is None:
            version = self._keras.__version__
            self._trainer = Trainer("keras", version, self._snapshot)
            self._trainer.say_hello(self._keras.backend.backend(), None)

    def epoch_begins(self):
        self._batch = -1

    def batch_ends(self, callbacks=None):
        trainer = self._trainer
        if trainer is None:
            return
        number, logs = _arguments(sys._getframe(2))
        made, self._batch = max(number - self._batch, 1), number
        if self._batch % STRIDE < made and logs and "loss" in logs:
            self._numbers.loss(float(logs["loss"]), trainer.steps.count)
        trainer.steps.batches_end(made)

    def evaluation_begins(self):
        if self._trainer is not None:
            self._trainer.steps.evaluation_begins()

    def evaluation_ends(self, result=None):
        if self._trainer is not None:
            self._trainer.steps.evaluation_ends()

    def _snapshot(self, frame):
        return Snapshot(self._model, self._trainer.steps.count)


def _arguments(frame):
    """`batch` and `logs`, of the function itself or of what is wrapped around it."""
    named = frame.f_locals
    if "arguments" in named:
        _, number, *rest = named["arguments"]
        return number, rest[0] if rest else named["named"].get("logs")
    return named["batch"], named.get("logs")


class Snapshot:
    def __init__(self, model, step):
        self._model, self._step = model, step

    def save(self):
        import os

        from .save import CannotSave

        folder = os.environ.get("ANTIFREEZE_SAVES")
        if not folder:
            raise CannotSave("there is no folder for it")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, f"step-{self._step}.keras")
        aside = os.path.join(folder, f"aside-{os.getpid()}.keras")
        self._model.save(aside)
        os.replace(aside, path)
        return {"path": path, "step": self._step, "bytes": os.path.getsize(path), "by": "antifreeze"}
