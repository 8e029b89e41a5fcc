"""The callback for Lightning: `Trainer(callbacks=[antifreeze.lightning.Callback()])`."""

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
    """Makes Lightning save a checkpoint when the guard asks for it, reports how many steps are planned, and splits
    steps that do not fit into memory.

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

    While all steps fit, Lightning runs them unchanged. For a split step, `training_step` is called for each part. Its
    loss must be a mean over the items; `items(batch)` returns their number if it is not the number of rows. Values are
    logged once, for the whole batch. Steps are not split with `split=False`, on several devices, or with manual
    optimization. `batch_norm` is the option of `antifreeze.step`, and an invalid value raises ValueError.
    """

    def __init__(
        self, split: bool = True, items: Optional[Callable[[Any], float]] = None, batch_norm: str = "refuse"
    ) -> None:
        self._allows_split, self._items = split, items or _split.length
        self._splitter = _callbacks.Splitter(batch_norm)
        self._owner: Optional[_callbacks.CheckpointOwner] = None
        self._is_updating = False
        # The step that this training begins at. Before the first step there is nothing to save.
        self._began = 0
        self._patches = _callbacks.MethodPatches()
        self._steps: Optional[_Steps] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # An interrupted training may have left its patches.
        self._detach()
        _callbacks.report_planned_steps(trainer.estimated_stepping_batches)
        self._began = trainer.global_step
        _callbacks.resume_from(self._began)
        self._is_updating = False
        self._owner = _callbacks.CheckpointOwner(
            checkpoints.LIGHTNING, type(trainer).fit, lambda: self._save(trainer), lambda trace: not self._is_updating,
            trainer,
        )
        self._owner.begin()
        single_device = lightning.strategies.SingleDeviceStrategy
        is_single_device = trainer.world_size == 1 and isinstance(trainer.strategy, single_device)
        fetches_data = "dataloader_iter" in inspect.signature(pl_module.training_step).parameters
        if self._allows_split and is_single_device and pl_module.automatic_optimization and not fetches_data:
            self._splitter.begin()
            self._steps = _Steps(trainer, pl_module, self._splitter, self._items)
            self._patches.patch(trainer.strategy, "training_step", self._steps.training_step)
            self._patches.patch(trainer.strategy, "backward", self._steps.backward)
            self._patches.patch(trainer.strategy.precision_plugin, "backward", self._steps.run_backward)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self._steps is not None:
            self._steps.index = batch_idx
        # Lightning's counters match the model here: all earlier batches are complete.
        self._is_updating = False
        if self._owner is None or trainer.global_step == self._began:
            return
        # All ranks save together if one of them is asked to.
        is_distributed, is_requested = trainer.world_size > 1, get_trainer().is_save_requested()
        if is_distributed and trainer.strategy.reduce_boolean_decision(is_requested, all=False):
            get_trainer().save_now(sys._getframe(), self._owner.save)
        if get_trainer().is_request_pending():
            get_trainer().serve_requests(sys._getframe(), self._owner.save)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        self._is_updating = True

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        self._is_updating = False

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._detach()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        # Ranks that did not fail would never reach this save, which waits for all.
        is_single_rank = trainer.world_size == 1
        if self._owner is not None and is_single_rank and oom.is_out_of_memory(exception) and not self._is_updating:
            get_trainer().save_before_exit(sys._getframe(), self._owner.save)
        self._detach()

    def _detach(self):
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
            # All ranks save together, and some strategies write one part per rank, so all use the same name.
            path, temporary = os.path.join(folder, name), os.path.join(folder, f".ranks-{name}")
            trainer.save_checkpoint(temporary)
            if not trainer.is_global_zero:
                return {"path": None, "by": "rank 0", "kind": checkpoints.LIGHTNING}
            checkpoints.replace(path, checkpoints.LIGHTNING, lambda temporary: None, temporary, folder)
            checkpoints.remove_older(folder, checkpoints.LIGHTNING, path)
        size = os.path.getsize(path) if os.path.isfile(path) else None
        return {"path": path, "bytes": size, "by": "framework", "kind": checkpoints.LIGHTNING}


class _Steps:
    """The steps of one training. Lightning runs forward, resets the gradients, and runs backward. A split step does
    both in the forward call, because Lightning needs the loss then, and keeps its gradients until the backward call."""

    def __init__(self, trainer, module, splitter, items):
        self._trainer, self._module, self._splitter, self._items = trainer, module, splitter, items
        self._precision = trainer.strategy.precision_plugin
        self._train, self._back, self._run_backward = (
            trainer.strategy.training_step, trainer.strategy.backward, self._precision.backward
        )
        # Index of the current batch.
        self.index = 0
        self._metrics = _metrics(module)
        self._log = module.log
        # Replaces `module.log`. Always the same function, because compiled code guards on it.
        has_compiler = "torch._dynamo" in sys.modules
        self._log_patched = torch.compiler.disable(self._record_log) if has_compiler else self._record_log
        # What the current part has logged. None for a whole batch, whose values are logged directly; `_names` has them.
        self._logged = None
        self._names = set()
        # A whole batch that has run forward, but not backward: its arguments, snapshots and results.
        self._forwarded = None
        self._is_warned = False

    def training_step(self, batch, *rest):
        self._forwarded, self._names = None, set()
        if not self._splitter.must_split(batch):
            before, states = self._splitter.snapshot(self._module), _metric_states(self._metrics)
            fits, result = self._splitter.try_whole(before, lambda: self._run_forward(batch, rest))
            if fits:
                self._forwarded = batch, rest, before, states, [weakref.ref(tensor) for tensor in _tensors(result)]
                return result
            _restore_metrics(states)
        return self._run_split(batch, rest)

    def backward(self, loss, *arguments, **named):
        if self._forwarded is None:
            return self._back(loss, *arguments, **named)
        (batch, rest, before, states, returned), self._forwarded = self._forwarded, None
        fits, result = self._splitter.try_whole(before, lambda: self._back(loss, *arguments, **named))
        if fits:
            self._splitter.record_changes(before)
            return result
        _restore_metrics(states)
        # The caller holds these tensors, and through them the graph that did not fit.
        for tensor in (loss, *(kept() for kept in returned)):
            if tensor is not None and tensor.grad_fn is not None and not tensor._is_view():
                tensor.detach_()
        result = self._run_split(batch, rest)
        if result is None:
            return loss
        loss = result["loss"] if isinstance(result, dict) else result
        return self._back(loss / self._trainer.accumulate_grad_batches, *arguments, **named)

    def run_backward(self, loss, *arguments, **named):
        """Called in `backward`. Hooks that Lightning calls afterwards find all gradients."""
        stash = _callbacks.GradientStash(self._parameters())
        try:
            self._run_backward(loss, *arguments, **named)
        except BaseException:
            stash.restore()
            raise
        stash.accumulate()

    def _run_forward(self, batch, rest):
        """Runs as in `training_step`, because `self.log` depends on the hook it is called in."""
        module, log = self._module, _callbacks.MethodPatches()
        log.patch(module, "log", self._log_patched)
        before, module._current_fx_name = module._current_fx_name, "training_step"
        try:
            return self._train(batch, *rest)
        finally:
            module._current_fx_name = before
            log.restore()

    def _record_log(self, *arguments, **named):
        if self._logged is None:
            self._names.add(arguments[0] if arguments else named.get("name"))
            return self._log(*arguments, **named)
        self._logged.append(_LOG.bind(None, *arguments, **named).arguments)

    def _run_split(self, batch, rest):
        parameters, states = self._parameters(), _metric_states(self._metrics)
        if self._resets_gradients():
            for optimizer in self._trainer.optimizers:
                optimizer.zero_grad()
        scale = self._loss_scale()
        whole = None

        def forward(numbered):
            nonlocal whole
            part, rows = numbered
            if whole is None or int(rows[0]) == 0:
                # A new attempt.
                _restore_metrics(states)
                whole = _CombinedParts(self._batch_length)
            self._logged = []
            try:
                result = self._run_forward(part, rest)
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
            mean = self._splitter.run_split(forward, self._with_row_numbers(batch), backward)
            computed = [(parameter, parameter.grad) for parameter in parameters if parameter.grad is not None]
        finally:
            stash.restore()
        if whole is None or whole.is_empty():
            return None
        self._log_combined(whole)
        return whole.result(_precomputed_loss(mean, scale, computed, self._module.device))

    def _with_row_numbers(self, batch):
        """Adds row numbers to the batch: row 0 marks the begin of an attempt."""
        try:
            self._batch_length = _split.length(batch)
        except ValueError:
            return batch
        return [batch, torch.arange(self._batch_length)]

    def _log_combined(self, whole):
        before, self._module._current_fx_name = self._module._current_fx_name, "training_step"
        try:
            for named in whole.logged():
                # Values that were logged before the out-of-memory error belong to the whole batch already.
                if named["name"] not in self._names:
                    self._log(**named)
        finally:
            self._module._current_fx_name = before
        if whole.uncertain_names and not self._is_warned:
            self._is_warned = True
            warnings.warn(
                f"steps are run in parts, and {', '.join(whole.uncertain_names)} is logged with a reduce_fx other than "
                "mean. It is applied to the values of the parts too, which is correct for counts, but not for means",
                stacklevel=2,
            )

    def _parameters(self):
        groups = (group for optimizer in self._trainer.optimizers for group in optimizer.param_groups)
        return list({id(parameter): parameter for group in groups for parameter in group["params"]}.values())

    def _resets_gradients(self):
        """Whether Lightning resets the gradients before this backward, and no hook reads them before."""
        plain = lightning.LightningModule
        is_looked_at = type(self._module).on_before_zero_grad is not plain.on_before_zero_grad or any(
            type(callback).on_before_zero_grad is not lightning.Callback.on_before_zero_grad
            for callback in self._trainer.callbacks
        )
        has_plain_optimizers = type(self._module).optimizer_zero_grad is plain.optimizer_zero_grad and not is_looked_at
        return has_plain_optimizers and self.index % self._trainer.accumulate_grad_batches == 0

    def _loss_scale(self):
        """Returns the loss scale of mixed precision, or None."""
        scaler = getattr(self._precision, "scaler", None)
        return None if scaler is None else scaler.scale(torch.ones((), device=self._module.device))


class _PrecomputedLoss(torch.autograd.Function):
    """A loss whose gradients were computed already."""

    @staticmethod
    def forward(context, value, scale, gradients, *parameters):
        context.scale, context.gradients = scale, gradients
        return value.clone()

    @staticmethod
    def backward(context, gradient):
        if context.gradients is None:
            raise RuntimeError("backward can run only once for a step that antifreeze split")
        # No reference is kept here, because autograd would copy the gradients then.
        gradients, context.gradients = context.gradients, None
        if context.scale is not None:
            gradient = gradient / context.scale
        return (None, None, None, *[gradients.pop(0).mul_(gradient) for _ in range(len(gradients))])


def _precomputed_loss(mean, scale, computed, device):
    if not computed:
        return torch.zeros((), device=device, requires_grad=True)
    parameters, gradients = [parameter for parameter, _ in computed], [gradient for _, gradient in computed]
    computed.clear()
    return _PrecomputedLoss.apply(mean, scale, gradients, *parameters)


class _CombinedParts:
    """Combines what the parts of a batch return and log."""

    def __init__(self, length):
        self._length = length
        self._parts = []
        # (name, how often it was logged in the part) → entries of the parts.
        self._logged = {}
        self.uncertain_names = []

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
        return {**{name: self._combine(name) for name in names}, "loss": loss}

    def _combine(self, name):
        """Concatenates rows and averages scalars. Of other values, returns that of the last part."""
        values = [(more[name], count, rows) for more, _, count, rows in self._parts if name in more]
        tensors = [value for value, _, _ in values]
        if all(torch.is_tensor(value) for value in tensors):
            if all(value.dim() and len(value) == rows for value, _, rows in values):
                return torch.cat(tensors)
            if all(not value.dim() and value.is_floating_point() for value in tensors):
                return _mean([(value, count) for value, count, _ in values])
        return tensors[-1]

    def logged(self):
        """Yields the arguments for `self.log`."""
        for (name, _), entries in self._logged.items():
            named = {key: value for key, value in entries[-1][0].items() if key not in ("self", "batch_size")}
            sizes = [entry.get("batch_size") for entry, _, _ in entries]
            if None not in sizes:
                # Some scripts pass the batch size of the whole for every part.
                is_fixed = all(size == self._length for size in sizes)
                named["batch_size"] = sizes[-1] if is_fixed else sum(sizes)
            if _is_number(named["value"]):
                named["value"] = self._value(name, named.get("reduce_fx", "mean"), entries)
            yield named

    def _value(self, name, reduce, entries):
        reduce = (reduce if isinstance(reduce, str) else getattr(reduce, "__name__", "")).lower()
        if reduce in ("mean", "avg", "") or all(is_loss for _, is_loss, _ in entries):
            return _mean([(entry["value"], weight) for entry, _, weight in entries])
        self.uncertain_names.append(name)
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


# The state of torchmetrics is not in buffers.


def _metrics(module):
    torchmetrics = sys.modules.get("torchmetrics")
    if torchmetrics is None:
        return []
    return [part for part in module.modules() if isinstance(part, torchmetrics.Metric)]


def _metric_states(metrics):
    return [
        (metric, metric._update_count, {name: _copy_state(metric, name) for name in metric._defaults})
        for metric in metrics
    ]


def _copy_state(metric, name):
    state = getattr(metric, name)
    # Lists only grow.
    return state.detach().clone() if torch.is_tensor(state) else len(state)


def _restore_metrics(states):
    for metric, updates, kept in states:
        for name, value in kept.items():
            if torch.is_tensor(value):
                setattr(metric, name, value.clone())
            else:
                del getattr(metric, name)[value:]
        metric._update_count, metric._computed = updates, None
