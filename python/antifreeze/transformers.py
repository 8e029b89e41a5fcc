"""For Hugging Face's Trainer: `trainer.add_callback(antifreeze.transformers.Callback(trainer))`."""

from __future__ import annotations

import copy
import os
import sys
from typing import Any, Optional

import torch
import transformers

from . import _callbacks, _split
from ._shim import checkpoints, holders, oom
from ._shim.save_path import saves_folder
from ._shim.trainer import OPTIMIZER_MODULES, CannotSave, get_trainer

# What is not learnt from.
IGNORED = -100


class Callback(transformers.TrainerCallback):
    """Has the Trainer save a checkpoint when the guard asks for it, and tells the guard how far the training means to
    go. Given the Trainer, it takes steps that do not fit in parts.

    >>> import antifreeze, antifreeze.transformers, torch, transformers
    >>> from transformers import BertConfig, BertForSequenceClassification
    >>> model = BertForSequenceClassification(BertConfig(
    ...     vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    ... ))
    >>> data = [{"input_ids": torch.ones(4, dtype=torch.long), "labels": torch.tensor(1)}] * 8
    >>> arguments = transformers.TrainingArguments(
    ...     "trained", max_steps=2, report_to=[], disable_tqdm=True, logging_strategy="no", save_strategy="no",
    ...     use_cpu=True,
    ... )
    >>> trainer = transformers.Trainer(model, arguments, train_dataset=data)
    >>> trainer.add_callback(antifreeze.transformers.Callback(trainer))
    >>> result = trainer.train(resume_from_checkpoint=antifreeze.last_save())
    {...}

    As long as all fits, steps are the Trainer's own. Parts weigh as many labels as count in them, or as many rows as
    they have. With more than one rank, and with DeepSpeed, steps are left whole. `batch_norm` is as of
    `antifreeze.step`.
    """

    def __init__(self, trainer: Optional[transformers.Trainer] = None, batch_norm: str = "refuse") -> None:
        self._trainer = trainer
        self._splitter = _callbacks.Splitter(batch_norm)
        self._patches = _callbacks.MethodPatches()
        self._owner: Optional[_callbacks.CheckpointOwner] = None
        # The Trainer itself saves at the end of this step, because the guard asks for it.
        self._is_asked = False
        # The step after which the Trainer has begun to change the model, and the state that counts its steps.
        self._updates_from: Optional[int] = None
        self._state: Any = None
        # The step that this training begins at; before it makes one there is nothing to save.
        self._began = 0
        self._divides: Optional[bool] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # If another training has left something: one that is interrupted does not end.
        self._patches.restore()
        self._is_asked = False
        self._updates_from, self._state = None, state
        _callbacks.report_planned_steps(state.max_steps)
        self._began = state.global_step
        _callbacks.resume_from(self._began)
        trainer = self._trainer
        self._owner = _callbacks.CheckpointOwner(
            checkpoints.TRANSFORMERS, transformers.Trainer.train, self._save, self._is_consistent, trainer
        )
        self._owner.begin()
        if trainer is not None and args.world_size == 1 and not _goes_back_itself(trainer):
            self._splitter.begin()
            self._hook(trainer)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._owner is not None:
            self._owner.end()
        self._patches.restore()

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._owner is not None and state.global_step > self._began and get_trainer().is_request_pending():
            get_trainer().serve_requests(sys._getframe(), self._owner.save)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._updates_from, self._state = state.global_step, state

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        is_asked = get_trainer().is_save_requested()
        if self._can_save(args) and self._owner is not None:
            if is_asked and not control.should_save:
                get_trainer().save_now(sys._getframe(), self._owner.save)
                is_asked = False
        elif args.world_size > 1:
            is_asked = _any_rank(is_asked, args.device)
        self._is_asked = is_asked
        if is_asked:
            get_trainer().saving_begins()
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Records a checkpoint of the Trainer, whether the guard asked for it or the script planned it."""
        was_asked, self._is_asked = self._is_asked, False
        path = os.path.abspath(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
        saved, why = None, "the Trainer did not save"
        if not state.is_world_process_zero:
            saved = {"path": None, "by": "rank 0", "kind": checkpoints.TRANSFORMERS}
        elif os.path.isdir(path):
            try:
                checkpoints.point(saves_folder(), checkpoints.TRANSFORMERS, state.global_step, path)
                saved = _saved(path)
            except (checkpoints.Damaged, OSError) as error:
                why = str(error)
        if was_asked:
            get_trainer().saving_ends(saved, why)

    def _can_save(self, args):
        """Whether the callback can save outside the Trainer's loop, where a save that fails ends the training."""
        return self._trainer is not None and args.world_size == 1 and hasattr(self._trainer, "_save_checkpoint")

    def _is_updating(self):
        """Whether the model is changed and the step not counted yet. It is over where the Trainer counts the step: an
        `on_step_end` that fails may be that of a callback before this one."""
        return self._updates_from is not None and self._state.global_step == self._updates_from

    def _is_consistent(self, trace):
        return not self._is_updating() and not holders.passes_through(trace, OPTIMIZER_MODULES)

    def _save(self):
        """Saves into a temporary folder first: neither an incomplete checkpoint nor the Trainer's own removal of older
        ones may cost a complete one."""
        trainer = self._trainer
        if trainer is None or not self._can_save(trainer.args):
            raise CannotSave("the Trainer saves at the end of its steps only, as it was not given to the callback")
        step, output = trainer.state.global_step, os.path.abspath(trainer.args.output_dir)
        name = f"checkpoint-{step}"
        path, stash = os.path.join(output, name), os.path.join(output, f".antifreeze-{os.getpid()}")
        is_ours = not os.path.isdir(path)
        if is_ours:
            os.makedirs(stash, exist_ok=True)
            patches = _callbacks.MethodPatches()
            patches.patch(trainer, "_get_output_dir", lambda trial=None: stash)
            try:
                checkpoints.replace(
                    path, checkpoints.TRANSFORMERS,
                    lambda temporary: trainer._save_checkpoint(trainer.model_wrapped, trial=None),
                    os.path.join(stash, name),
                )
            finally:
                patches.restore()
                checkpoints.remove(stash)
        checkpoints.point(saves_folder(), checkpoints.TRANSFORMERS, step, path, is_ours)
        return _saved(path)

    def _hook(self, trainer):
        train = trainer.training_step

        def training_step(model, inputs, *rest, **named):
            if not self._splitter.must_split(inputs):
                # Some take out what they have used.
                kept = copy.copy(inputs)
                fits, loss = self._whole(trainer, model, lambda: train(model, inputs, *rest, **named))
                if fits:
                    return loss
                inputs = kept
            return self._in_parts(trainer, train, model, inputs, *rest, **named)

        self._patches.patch(trainer, "training_step", training_step)

    def _whole(self, trainer, model, take):
        before = self._splitter.snapshot(model)
        optimizer = trainer.optimizer
        groups = optimizer.param_groups if optimizer is not None else [{"params": model.parameters()}]
        stash = _callbacks.GradientStash([parameter for group in groups for parameter in group["params"]])
        fits = False
        try:
            fits, loss = self._splitter.try_whole(before, take)
        finally:
            if fits:
                stash.accumulate()
            else:
                stash.restore()
        if fits:
            self._splitter.record_changes(before)
        return fits, loss

    def _in_parts(self, trainer, train, model, inputs, num_items_in_batch=None):
        accelerator, device, named = trainer.accelerator, trainer.args.device, {}
        back = accelerator.backward

        def forward(part):
            count = items = _items(part)
            if num_items_in_batch is not None:
                # As if the part were all: what comes is its mean, whether the model divides by this or not.
                count = _labels(trainer, part, num_items_in_batch)
                items = float(count)
            if items == 0:
                return torch.zeros((), device=device, requires_grad=True), 0
            caught, patches = [], _callbacks.MethodPatches()
            patches.patch(accelerator, "backward", lambda loss, **more: caught.append((loss, more)))
            try:
                train(model, part, *([] if num_items_in_batch is None else [count]))
            except Exception as error:
                if caught and not oom.is_out_of_memory(error):
                    raise _HasItsOwnWay from error
                raise
            finally:
                patches.restore()
            if len(caught) != 1:
                raise _HasItsOwnWay
            [(loss, more)] = caught
            named.update(more)
            return loss * items, items

        share = self._share(trainer, model, inputs, num_items_in_batch)
        try:
            mean = self._splitter.run_split(forward, inputs, lambda loss: back(loss * share, **named))
        except _HasItsOwnWay as error:
            reason = "its training_step does more than to go forward, and back once"
            raise self._splitter.refused(reason) from error.__cause__
        # Of no label at all, a number.
        return torch.as_tensor(share * mean, device=device, dtype=None if torch.is_tensor(mean) else torch.float32)

    def _share(self, trainer, model, inputs, number):
        """Of this batch, in a loss that is divided by the labels of all batches that are accumulated."""
        if number is None:
            return 1.0
        here, all_of_them = float(_labels(trainer, inputs, number)), float(number)
        if here == all_of_them or not here:
            return 1.0
        if self._divides is None:
            self._divides = _divides(trainer, model, inputs, number)
        return here / all_of_them if self._divides else 1.0


def _saved(path):
    size = sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
    return {"path": path, "bytes": size, "by": "framework", "kind": checkpoints.TRANSFORMERS}


def _any_rank(is_asked, device):
    """Whether the guard asks any rank for a save: ranks save together."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return is_asked
    asked = torch.tensor(int(is_asked), device=device)
    distributed.all_reduce(asked, op=distributed.ReduceOp.MAX)
    return bool(asked)


class _HasItsOwnWay(Exception):
    """A step that cannot be stopped between forward and backward."""


def _goes_back_itself(trainer):
    """Where an engine, or an optimizer that steps meanwhile, has its hands in it."""
    return getattr(trainer, "is_deepspeed_enabled", False) or "lomo" in str(trainer.args.optim).lower()


def _divides(trainer, model, inputs, number):
    """Whether its loss is divided by the number that it is given: many models take it, and pay no heed."""
    rows = _split.parts(inputs, _split.length(inputs), 1)
    row = next(row for row in rows if float(_labels(trainer, row, number)))
    once = _labels(trainer, row, number)
    random = _split.random_state(torch)

    def loss_of(number):
        loss = float(trainer.compute_loss(model, trainer._prepare_inputs(dict(row)), num_items_in_batch=number))
        # Dropout draws the same again, and the training what it would have drawn.
        _split.set_random_state(torch, random)
        return loss

    with torch.no_grad(), trainer.compute_loss_context_manager():
        whole, half = loss_of(once), loss_of(2 * once)
    return abs(whole - 2 * half) < abs(whole - half)


def _labels(trainer, batch, like):
    """How many count, as the Trainer itself counts them."""
    count = getattr(trainer, "_get_num_items_in_batch", None)
    number = count([batch], trainer.args.device) if count is not None else None
    if number is None:
        number = (batch["labels"] != IGNORED).sum()
    return number if torch.is_tensor(like) or not torch.is_tensor(number) else int(number)


def _items(batch):
    labels = batch.get("labels") if hasattr(batch, "get") else None
    if torch.is_tensor(labels) and labels.dim() > 1 and not labels.is_floating_point():
        return int((labels != IGNORED).sum())
    return _split.length(batch)
