"""For Lightning: `Trainer(callbacks=[antifreeze.lightning.Callback()])`."""

from __future__ import annotations

import inspect
import numbers
import os
import sys
import warnings
import weakref
from typing import Any, Callable, Optional

import torch

from . import _callbacks, _split
from ._shim import checkpoints, oom
from ._shim.save_path import saves_folder
from ._shim.trainer import get_trainer

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as lightning
else:
    import lightning.pytorch as lightning

_LOG = inspect.signature(lightning.LightningModule.log)


class Callback(lightning.Callback):
    """Has Lightning save a checkpoint when the guard asks for it, tells the guard how far the training means to go, and
    takes steps that do not fit in parts.

    >>> import antifreeze.lightning, lightning, torch
    >>> class Model(lightning.LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(4, 1)
    ...     def training_step(self, batch, index):
    ...         return self.layer(batch).pow(2).mean()
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.1)
    >>> trainer = lightning.Trainer(
    ...     max_epochs=1, callbacks=[antifreeze.lightning.Callback()], accelerator="cpu", logger=False,
    ...     enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    ... )
    >>> data = torch.utils.data.DataLoader(torch.ones(8, 4), batch_size=4)
    >>> trainer.fit(Model(), data, ckpt_path=antifreeze.last_save())

    As long as all fits, steps are Lightning's own. In parts, `training_step` is called for each of them, and its loss
    has to be a mean over the items; `items(batch)` tells their number, where it is not that of rows. What it logs is
    logged once, of the whole batch. With `split=False`, on more than one device, and where the optimization is not
    automatic, steps are left whole. `batch_norm` is as of `antifreeze.step`.
    """

    def __init__(
        self, split: bool = True, items: Optional[Callable[[Any], float]] = None, batch_norm: str = "refuse"
    ) -> None:
        self._splits, self._items = split, items or _split.length
        self._splitter = _callbacks.Splitter(batch_norm)
        self._owner: Optional[_callbacks.CheckpointOwner] = None
        self._is_updating = False
        # The step that this training begins at; before it makes one there is nothing to save.
        self._began = 0
        self._patches = _callbacks.MethodPatches()
        self._steps: Optional[_Steps] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # If another training has left something.
        self._end()
        _callbacks.report_planned_steps(trainer.estimated_stepping_batches)
        self._began = trainer.global_step
        _callbacks.resume_from(self._began)
        self._is_updating = False
        self._owner = _callbacks.CheckpointOwner(
            checkpoints.LIGHTNING, type(trainer).fit, lambda: self._save(trainer), lambda trace: not self._is_updating,
            trainer,
        )
        self._owner.begin()
        is_alone = trainer.world_size == 1 and isinstance(trainer.strategy, lightning.strategies.SingleDeviceStrategy)
        fetches_itself = "dataloader_iter" in inspect.signature(pl_module.training_step).parameters
        if self._splits and is_alone and pl_module.automatic_optimization and not fetches_itself:
            self._splitter.begin()
            self._steps = _Steps(trainer, pl_module, self._splitter, self._items)
            self._patches.patch(trainer.strategy, "training_step", self._steps.training_step)
            self._patches.patch(trainer.strategy, "backward", self._steps.backward)
            self._patches.patch(trainer.strategy.precision_plugin, "backward", self._steps.go_back)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._steps is not None:
            self._steps.index = batch_idx
        # Here Lightning's counters fit to the model: all batches before this one are done, and it is not begun.
        self._is_updating = False
        if self._owner is None or trainer.global_step == self._began:
            return
        # Ranks save together, when one of them is asked to.
        is_spread, is_asked = trainer.world_size > 1, get_trainer().is_save_requested()
        if is_spread and trainer.strategy.reduce_boolean_decision(is_asked, all=False):
            get_trainer().save_now(sys._getframe(), self._owner.save)
        if get_trainer().is_request_pending():
            get_trainer().serve_requests(sys._getframe(), self._owner.save)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._is_updating = True

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._is_updating = False

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # Ranks that do not fail would never come to this save, and it waits for them.
        is_alone = trainer.world_size == 1
        if self._owner is not None and is_alone and oom.is_out_of_memory(exception) and not self._is_updating:
            get_trainer().save_at_end(sys._getframe(), self._owner.save)
        self._end()

    def _end(self):
        if self._owner is not None:
            self._owner.end()
        self._patches.restore()
        self._steps = None

    def _save(self, trainer):
        folder = saves_folder() or trainer.default_root_dir
        step = trainer.global_step
        name = f"step-{step}.ckpt"
        if trainer.world_size == 1:
            path = checkpoints.write(folder, checkpoints.LIGHTNING, step, trainer.save_checkpoint)
        else:
            # All ranks save together, and some strategies let each write a part: the name is the same for all.
            path, temporary = os.path.join(folder, name), os.path.join(folder, f".ranks-{name}")
            trainer.save_checkpoint(temporary)
            if not trainer.is_global_zero:
                return {"path": None, "by": "rank 0", "kind": checkpoints.LIGHTNING}
            checkpoints.replace(path, checkpoints.LIGHTNING, lambda temporary: None, temporary, folder)
            checkpoints.remove_older(folder, checkpoints.LIGHTNING, path)
        size = os.path.getsize(path) if os.path.isfile(path) else None
        return {"path": path, "bytes": size, "by": "framework", "kind": checkpoints.LIGHTNING}


class _Steps:
    """Of one training. Lightning goes forward, forgets the gradients of the step before, and goes back. In parts both
    are done where it goes forward, and the gradients are kept until it goes back: before that it wants to see the loss.
    """

    def __init__(self, trainer, module, splitter, items):
        self._trainer, self._module, self._splitter, self._items = trainer, module, splitter, items
        self._precision = trainer.strategy.precision_plugin
        self._train, self._back, self._go_back = (
            trainer.strategy.training_step, trainer.strategy.backward, self._precision.backward
        )
        # Of the batch that is trained on.
        self.index = 0
        self._metrics = _metrics(module)
        self._log = module.log
        # Called in its place; always the same one, as what is compiled looks at it.
        self._logs = torch.compiler.disable(self._note) if "torch._dynamo" in sys.modules else self._note
        # Of a part, what it has logged; None of a whole, which logs for itself: the names only.
        self._logged = None
        self._names = set()
        # Of a whole that went forward, and not yet back: what it was called with, what it found, and what it returned.
        self._gone = None
        self._is_warned = False

    def training_step(self, batch, *rest):
        self._gone, self._names = None, set()
        if not self._splitter.must_split(batch):
            before, states = self._splitter.snapshot(self._module), _states(self._metrics)
            fits, result = self._splitter.try_whole(before, lambda: self._go_forward(batch, rest))
            if fits:
                self._gone = batch, rest, before, states, [weakref.ref(tensor) for tensor in _tensors(result)]
                return result
            _restore(states)
        return self._in_parts(batch, rest)

    def backward(self, loss, *arguments, **named):
        if self._gone is None:
            return self._back(loss, *arguments, **named)
        (batch, rest, before, states, returned), self._gone = self._gone, None
        fits, result = self._splitter.try_whole(before, lambda: self._back(loss, *arguments, **named))
        if fits:
            self._splitter.record_changes(before)
            return result
        _restore(states)
        # Those who called hold it, and with it all that did not fit.
        for tensor in (loss, *(kept() for kept in returned)):
            if tensor is not None and tensor.grad_fn is not None and not tensor._is_view():
                tensor.detach_()
        result = self._in_parts(batch, rest)
        if result is None:
            return loss
        loss = result["loss"] if isinstance(result, dict) else result
        return self._back(loss / self._trainer.accumulate_grad_batches, *arguments, **named)

    def go_back(self, loss, *arguments, **named):
        """In `backward`; what it calls afterwards finds all gradients."""
        stash = _callbacks.GradientStash(self._parameters())
        try:
            self._go_back(loss, *arguments, **named)
        except BaseException:
            stash.restore()
            raise
        stash.accumulate()

    def _go_forward(self, batch, rest):
        """As in `training_step`: `self.log` goes by where it is."""
        module, log = self._module, _callbacks.MethodPatches()
        log.patch(module, "log", self._logs)
        before, module._current_fx_name = module._current_fx_name, "training_step"
        try:
            return self._train(batch, *rest)
        finally:
            module._current_fx_name = before
            log.restore()

    def _note(self, *arguments, **named):
        if self._logged is None:
            self._names.add(arguments[0] if arguments else named.get("name"))
            return self._log(*arguments, **named)
        self._logged.append(_LOG.bind(None, *arguments, **named).arguments)

    def _in_parts(self, batch, rest):
        parameters, states = self._parameters(), _states(self._metrics)
        if self._forgets_next():
            for optimizer in self._trainer.optimizers:
                optimizer.zero_grad()
        scale = self._scale()
        whole = None

        def forward(numbered):
            nonlocal whole
            part, rows = numbered
            if whole is None or int(rows[0]) == 0:
                # Another attempt.
                _restore(states)
                whole = _Whole(self._batch_length)
            self._logged = []
            try:
                result = self._go_forward(part, rest)
            finally:
                logged, self._logged = self._logged, None
            if result is None:
                return torch.zeros((), device=self._module.device, requires_grad=True), 0
            count = self._items(part)
            loss = result if torch.is_tensor(result) else result["loss"]
            whole.add(result, loss.detach(), count, len(rows), logged)
            return loss * count, count

        def backward(loss):
            (loss if scale is None else loss * scale).backward()

        stash = _callbacks.GradientStash(parameters)
        try:
            mean = self._splitter.run_split(forward, self._numbered(batch), backward)
            learnt = [(parameter, parameter.grad) for parameter in parameters if parameter.grad is not None]
        finally:
            stash.restore()
        if whole is None or whole.is_empty():
            return None
        self._log_whole(whole)
        return whole.result(_loss(mean, scale, learnt, self._module.device))

    def _numbered(self, batch):
        """With the numbers of its rows, by which an attempt is seen to begin."""
        try:
            self._batch_length = _split.length(batch)
        except ValueError:
            return batch
        return [batch, torch.arange(self._batch_length)]

    def _log_whole(self, whole):
        before, self._module._current_fx_name = self._module._current_fx_name, "training_step"
        try:
            for named in whole.logged():
                # What was logged before there was no memory is of the whole already.
                if named["name"] not in self._names:
                    self._log(**named)
        finally:
            self._module._current_fx_name = before
        if whole.guesses and not self._is_warned:
            self._is_warned = True
            warnings.warn(
                f"steps are taken in parts; {', '.join(whole.guesses)} is logged with a reduce_fx that is no mean: "
                "what its parts log is put together by it too, which is right for counts, and not for means",
                stacklevel=2,
            )

    def _parameters(self):
        groups = (group for optimizer in self._trainer.optimizers for group in optimizer.param_groups)
        return list({id(parameter): parameter for group in groups for parameter in group["params"]}.values())

    def _forgets_next(self):
        """Whether Lightning itself forgets the gradients that are there, before it goes back, and nobody looks."""
        plain = lightning.LightningModule
        is_looked_at = type(self._module).on_before_zero_grad is not plain.on_before_zero_grad or any(
            type(callback).on_before_zero_grad is not lightning.Callback.on_before_zero_grad
            for callback in self._trainer.callbacks
        )
        has_plain_optimizers = type(self._module).optimizer_zero_grad is plain.optimizer_zero_grad and not is_looked_at
        return has_plain_optimizers and self.index % self._trainer.accumulate_grad_batches == 0

    def _scale(self):
        """By which losses are made larger, for numbers of half precision."""
        scaler = getattr(self._precision, "scaler", None)
        return None if scaler is None else scaler.scale(torch.ones((), device=self._module.device))


class _Learnt(torch.autograd.Function):
    """A loss whose gradients are known."""

    @staticmethod
    def forward(context, value, scale, gradients, *parameters):
        context.scale, context.gradients = scale, gradients
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        if context.gradients is None:
            raise RuntimeError("a step that was taken in parts can go back only once")
        # None is kept here: whom they are given to would copy them.
        gradients, context.gradients = context.gradients, None
        if context.scale is not None:
            gradient = gradient / context.scale
        return (None, None, None, *[gradients.pop(0).mul_(gradient) for _ in range(len(gradients))])


def _loss(mean, scale, learnt, device):
    if not learnt:
        return torch.zeros((), device=device, requires_grad=True)
    parameters, gradients = [parameter for parameter, _ in learnt], [gradient for _, gradient in learnt]
    learnt.clear()
    return _Learnt.apply(mean, scale, gradients, *parameters)


class _Whole:
    """What the parts of a batch return and log, put together."""

    def __init__(self, length):
        self._length = length
        self._parts = []
        # Of each time that a name is logged in a part.
        self._logged = {}
        self.guesses = []

    def is_empty(self):
        return not self._parts

    def add(self, result, loss, count, rows, logged):
        more = {} if torch.is_tensor(result) else {name: _detached(result[name]) for name in result if name != "loss"}
        self._parts.append((more, None if torch.is_tensor(result) else dict, float(count), rows))
        times = {}
        for named in logged:
            name = named["name"]
            times[name] = times.get(name, 0) + 1
            value = _detached(named["value"])
            is_loss = _is_number(value) and float(value) == float(loss)
            size = named.get("batch_size")
            weight = float(count if is_loss or size is None else size)
            entry = {**named, "value": value}
            self._logged.setdefault((name, times[name]), []).append((entry, is_loss, weight))

    def result(self, loss):
        if self._parts[-1][1] is None:
            return loss
        names = {name: None for more, *_ in self._parts for name in more}
        return {**{name: self._joined(name) for name in names}, "loss": loss}

    def _joined(self, name):
        """Rows one after the other, means as a mean; what is neither, as the last part has it."""
        values = [(more[name], count, rows) for more, _, count, rows in self._parts if name in more]
        tensors = [value for value, _, _ in values]
        if all(torch.is_tensor(value) for value in tensors):
            if all(value.dim() and len(value) == rows for value, _, rows in values):
                return torch.cat(tensors)
            if all(not value.dim() and value.is_floating_point() for value in tensors):
                return _mean([(value, count) for value, count, _ in values])
        return tensors[-1]

    def logged(self):
        """As `self.log` is to be called."""
        for (name, _), entries in self._logged.items():
            named = {key: value for key, value in entries[-1][0].items() if key not in ("self", "batch_size")}
            sizes = [entry.get("batch_size") for entry, _, _ in entries]
            if None not in sizes:
                # Some give that of the whole, whatever they get.
                is_fixed = all(size == self._length for size in sizes)
                named["batch_size"] = sizes[-1] if is_fixed else sum(sizes)
            if _is_number(named["value"]):
                named["value"] = self._value(name, named.get("reduce_fx", "mean"), entries)
            yield named

    def _value(self, name, reduce, entries):
        reduce = (reduce if isinstance(reduce, str) else getattr(reduce, "__name__", "")).lower()
        if reduce in ("mean", "avg", "") or all(is_loss for _, is_loss, _ in entries):
            return _mean([(entry["value"], weight) for entry, _, weight in entries])
        self.guesses.append(name)
        values = torch.stack([torch.as_tensor(entry["value"]) for entry, _, _ in entries])
        return getattr(values, reduce)()


def _is_number(value):
    return isinstance(value, numbers.Number) or torch.is_tensor(value) and value.numel() == 1


def _mean(weighted):
    whole = sum(weight for _, weight in weighted)
    if not whole:
        return weighted[-1][0]
    return sum(value * (weight / whole) for value, weight in weighted)


def _detached(value):
    return value.detach() if torch.is_tensor(value) else value


def _tensors(result):
    values = result.values() if isinstance(result, dict) else [result]
    return [value for value in values if torch.is_tensor(value)]


# What torchmetrics keep from step to step is in no buffer.


def _metrics(module):
    torchmetrics = sys.modules.get("torchmetrics")
    if torchmetrics is None:
        return []
    return [part for part in module.modules() if isinstance(part, torchmetrics.Metric)]


def _states(metrics):
    return [
        (metric, metric._update_count, {name: _kept(metric, name) for name in metric._defaults}) for metric in metrics
    ]


def _kept(metric, name):
    state = getattr(metric, name)
    # Lists are only ever added to.
    return state.detach().clone() if torch.is_tensor(state) else len(state)


def _restore(states):
    for metric, updates, kept in states:
        for name, value in kept.items():
            if torch.is_tensor(value):
                setattr(metric, name, value.clone())
            else:
                del getattr(metric, name)[value:]
        metric._update_count, metric._computed = updates, None
