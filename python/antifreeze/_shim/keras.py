"""Keras 3 and what TensorFlow brings of it: `fit`, through the list of callbacks that every `fit` has, and
loops of one's own, through the optimizer.

What happens within a step is compiled there, so that phases are unknown. A step of `fit` may be several
batches (`steps_per_execution`); batches are counted. A loop that is compiled as a whole is not seen.
"""

import math
import sys
import weakref

from . import call_hooks, checkpoints, holders, training_loop
from .save_path import call_on_checkpoint, write_checkpoint
from .loss_watch import LossWatch
from .trainer import CannotSave, get_trainer

# Batches between two looks at the loss, which has to be waited for.
STRIDE = 16

_is_watched = _has_pipelines = False


def observe():
    """Once it is all there: TensorFlow may bring Keras before it has come itself."""
    global _is_watched
    _watch_pipelines()
    keras = sys.modules.get("keras")
    callbacks = sys.modules.get("keras.src.callbacks.callback_list")
    if _is_watched or keras is None or callbacks is None:
        return
    _is_watched = True
    watch = Watch(keras)
    kind = callbacks.CallbackList
    call_hooks.hook_calls(kind, "on_train_begin", watch.training_begins, takes=1)
    call_hooks.hook_calls(kind, "on_train_end", end=watch.training_ends)
    call_hooks.hook_calls(kind, "on_epoch_begin", watch.epoch_begins)
    call_hooks.hook_calls(kind, "on_train_batch_end", watch.batch_ends, takes=3)
    call_hooks.hook_calls(kind, "on_test_begin", watch.evaluation_begins)
    call_hooks.hook_calls(kind, "on_test_end", end=watch.evaluation_ends)
    optimizer = sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer
    call_hooks.hook_calls(optimizer, "apply", watch.update_begins, watch.update_ends, watch.update_fails, takes=1)


def _watch_pipelines():
    global _has_pipelines
    kind = holders.pipeline_class()
    if kind is not None and not _has_pipelines:
        _has_pipelines = True
        call_hooks.hook_calls(kind, "__iter__", get_trainer().pipeline_begins, takes=1)


class Watch:
    def __init__(self, keras):
        self._keras = keras
        self._trainer = get_trainer()
        self._steps = self._trainer.steps
        self._loss_watch = LossWatch()
        self._model = None
        self._is_fitting = self._is_known = False
        self._batch = -1
        # Batches of an epoch of `fit`, where Keras knows them.
        self._steps_in_epoch = None
        # That is at work now.
        self._optimizer = None

    def _trains(self):
        if not self._is_known:
            self._is_known = True
            backend = self._keras.backend.backend()
            dtype = self._keras.config.floatx()
            self._trainer.report_framework("keras", self._keras.__version__, backend, dtype, None)

    # `fit`.

    def training_begins(self, callbacks=None):
        self._is_fitting = True
        self._trains()
        model = getattr(callbacks, "model", None) or getattr(callbacks, "_model", None)
        self._model = weakref.ref(model) if model is not None else None
        self._trainer.save = self._save
        steps = (getattr(callbacks, "params", None) or {}).get("steps")
        self._steps_in_epoch = steps if type(steps) is int and steps > 0 else None

    def training_ends(self):
        self._is_fitting = False

    def epoch_begins(self):
        self._batch = -1

    def batch_ends(self, callbacks=None, number=0, logs=None):
        made, self._batch = max(number - self._batch, 1), number
        if self._batch % STRIDE < made and logs and "loss" in logs:
            self._loss_watch.check_loss(float(logs["loss"]), self._steps.count)
        self._steps.add_steps(made)

    def evaluation_begins(self):
        self._steps.evaluation_begins()

    def evaluation_ends(self):
        self._steps.evaluation_ends()

    # A loop of the script's own. Where it is compiled the optimizer is seen once, and not at work.

    def _is_at_work(self):
        if self._is_fitting:
            return False
        tensorflow = sys.modules.get("tensorflow")
        return tensorflow is not None and tensorflow.executing_eagerly()

    def update_begins(self, optimizer=None):
        if self._is_at_work():
            self._trains()
            if self._model is None:
                self._trainer.save = self._save
            self._optimizer = optimizer
            self._steps.optimizer_begins()

    def update_ends(self):
        optimizer, self._optimizer = self._optimizer, None
        if optimizer is not None:
            self._steps.optimizer_ends(optimizer)

    def update_fails(self):
        self._optimizer = None

    def _model_in(self, frame):
        """The one that the script's own loop trains, if there is just one."""
        models = dict(holders.named_objects(frame, (self._keras.Model,))).values()
        inner = {id(layer) for model in models for layer in model._flatten_layers(include_self=False)}
        outer = [model for model in models if id(model) not in inner]
        return outer[0] if len(outer) == 1 else None

    def _save(self, frame):
        by_script = call_on_checkpoint()
        if by_script is not None:
            return by_script
        model = self._model() if self._model else self._model_in(frame)
        if model is None:
            raise CannotSave("the model that is trained is not known")
        # An optimizer may hold twice as much as its model.
        size = 3 * sum(4 * math.prod(variable.shape) for variable in model.variables)
        saved = write_checkpoint(checkpoints.KERAS_WEIGHTS, self._steps.count, size, model.save_weights)
        names = [name for name, known in holders.named_objects(frame, (self._keras.Model,)) if known is model]
        if self._is_fitting:
            return {**saved, "names": names, "fit": {"steps_in_epoch": self._steps_in_epoch}}
        return {**saved, "names": names, **training_loop.report_fields(frame, names, self._steps.count)}
