"""Keras 3 and the Keras of TensorFlow: observes `fit` through its list of callbacks, and other loops through the
optimizer.

Steps are compiled, so the phases within them are unknown. A step of `fit` may be several batches
(`steps_per_execution`); batches are counted. A loop that is compiled as a whole is not detected.
"""

import math
import sys
import weakref

from . import call_hooks, checkpoints, holders, training_loop
from .save_path import call_on_checkpoint, write_checkpoint
from .loss_watch import LossWatch
from .trainer import CannotSave, get_trainer

# Batches between two reads of the loss, because a read waits for the device.
LOSS_STRIDE_BATCHES = 16

_is_watched = _has_pipelines = False


def observe():
    """Called after each import of Keras or TensorFlow: one may import a part of the other before it is complete."""
    global _is_watched
    _watch_pipelines()
    keras = sys.modules.get("keras")
    callbacks = sys.modules.get("keras.src.callbacks.callback_list")
    if _is_watched or keras is None or callbacks is None:
        return
    _is_watched = True
    watch = KerasWatch(keras)
    callback_list = callbacks.CallbackList
    call_hooks.hook_calls(callback_list, "on_train_begin", watch.training_begins, takes=1)
    call_hooks.hook_calls(callback_list, "on_train_end", end=watch.training_ends)
    call_hooks.hook_calls(callback_list, "on_epoch_begin", watch.epoch_begins)
    call_hooks.hook_calls(callback_list, "on_train_batch_end", watch.batch_ends, takes=3)
    call_hooks.hook_calls(callback_list, "on_test_begin", watch.evaluation_begins)
    call_hooks.hook_calls(callback_list, "on_test_end", end=watch.evaluation_ends)
    optimizer = sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer
    call_hooks.hook_calls(optimizer, "apply", watch.update_begins, watch.update_ends, watch.update_fails, takes=1)


def _watch_pipelines():
    global _has_pipelines
    pipeline = holders.pipeline_class()
    if pipeline is not None and not _has_pipelines:
        _has_pipelines = True
        call_hooks.hook_calls(pipeline, "__iter__", get_trainer().pipeline_begins, takes=1)


class KerasWatch:
    def __init__(self, keras):
        self._keras = keras
        self._trainer = get_trainer()
        self._steps = self._trainer.steps
        self._loss_watch = LossWatch()
        self._model = None
        self._is_fitting = self._is_reported = False
        self._batch = -1
        # Batches in an epoch of `fit`, if Keras knows them.
        self._steps_in_epoch = None
        # The optimizer that is stepping now.
        self._optimizer = None

    def _report_framework(self):
        if not self._is_reported:
            self._is_reported = True
            backend = self._keras.backend.backend()
            dtype = self._keras.config.floatx()
            self._trainer.report_framework("keras", self._keras.__version__, backend, dtype, None)

    # `fit`.

    def training_begins(self, callbacks=None):
        self._is_fitting = True
        self._report_framework()
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
        if self._batch % LOSS_STRIDE_BATCHES < made and logs and "loss" in logs:
            self._loss_watch.check_loss(float(logs["loss"]), self._steps.count)
        self._steps.add_steps(made)

    def evaluation_begins(self):
        self._steps.evaluation_begins()

    def evaluation_ends(self):
        self._steps.evaluation_ends()

    # A loop of the script. If it is compiled, the optimizer is only called once, while it is traced.

    def _is_eager_loop(self):
        if self._is_fitting:
            return False
        tensorflow = sys.modules.get("tensorflow")
        return tensorflow is not None and tensorflow.executing_eagerly()

    def update_begins(self, optimizer=None):
        if self._is_eager_loop():
            self._report_framework()
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

    def _only_model(self, frame):
        """Returns the model that the script's loop trains, if there is only one."""
        models = dict(holders.named_objects(frame, (self._keras.Model,))).values()
        inner = {id(layer) for model in models for layer in model._flatten_layers(include_self=False)}
        outer = [model for model in models if id(model) not in inner]
        return outer[0] if len(outer) == 1 else None

    def _save(self, frame):
        by_script = call_on_checkpoint()
        if by_script is not None:
            return by_script
        model = self._model() if self._model else self._only_model(frame)
        if model is None:
            raise CannotSave("antifreeze does not know which model is trained")
        # An optimizer may hold twice the size of its model.
        size = 3 * sum(4 * math.prod(variable.shape) for variable in model.variables)
        saved = write_checkpoint(checkpoints.KERAS_WEIGHTS, self._steps.count, size, model.save_weights)
        names = [name for name, known in holders.named_objects(frame, (self._keras.Model,)) if known is model]
        if self._is_fitting:
            return {**saved, "names": names, "fit": {"steps_in_epoch": self._steps_in_epoch}}
        return {**saved, "names": names, **training_loop.report_fields(frame, names, self._steps.count)}
