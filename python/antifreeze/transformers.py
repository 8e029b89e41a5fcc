"""The callback for Hugging Face's Trainer: `trainer.add_callback(antifreeze.transformers.Callback(trainer))`."""

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

# Labels with this value do not count in the loss.
IGNORED_LABEL = -100


class Callback(transformers.TrainerCallback):
    """Makes the Trainer save a checkpoint when the guard asks for it, and reports how many steps are planned. If it is
    given the Trainer, it also splits steps that do not fit into memory.

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

    While all steps fit, the Trainer runs them unchanged. Parts are weighted by the number of their labels that count,
    or of their rows. With several ranks or DeepSpeed, steps are not split. `batch_norm` is the option of
    `antifreeze.step`, and an invalid value raises ValueError.
    """

    def __init__(self, trainer: Optional[transformers.Trainer] = None, batch_norm: str = "refuse") -> None:
        self._trainer = trainer
        self._splitter = _callbacks.Splitter(batch_norm)
        self._patches = _callbacks.MethodPatches()
        self._owner: Optional[_callbacks.CheckpointOwner] = None
        # Whether the Trainer saves at the end of this step because the guard asked for it.
        self._is_requested = False
        # The step during which the Trainer began to update the model, and the state that counts its steps.
        self._updates_from: Optional[int] = None
        self._state: Any = None
        # The step that this training begins at. Before the first step there is nothing to save.
        self._began = 0
        self._divides_loss: Optional[bool] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        # An interrupted training may have left its patches.
        self._patches.restore()
        self._is_requested = False
        self._updates_from, self._state = None, state
        _callbacks.report_planned_steps(state.max_steps)
        self._began = state.global_step
        _callbacks.resume_from(self._began)
        trainer = self._trainer
        self._owner = _callbacks.CheckpointOwner(
            checkpoints.TRANSFORMERS, transformers.Trainer.train, self._save, self._is_consistent, trainer
        )
        self._owner.begin()
        if trainer is not None and args.world_size == 1 and not _runs_backward_itself(trainer):
            self._splitter.begin()
            self._patch_training_step(trainer)

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
        is_requested = get_trainer().is_save_requested()
        if self._can_save(args) and self._owner is not None:
            if is_requested and not control.should_save:
                get_trainer().save_now(sys._getframe(), self._owner.save)
                is_requested = False
        elif args.world_size > 1:
            is_requested = _any_rank(is_requested, args.device)
        self._is_requested = is_requested
        if is_requested:
            get_trainer().saving_begins()
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Records a checkpoint of the Trainer, whether the guard asked for it or the script planned it."""
        was_asked, self._is_requested = self._is_requested, False
        path = os.path.abspath(os.path.join(args.output_dir, f"checkpoint-{state.global_step}"))
        saved, why = None, "the Trainer did not save"
        if not state.is_world_process_zero:
            saved = {"path": None, "by": "rank 0", "kind": checkpoints.TRANSFORMERS}
        elif os.path.isdir(path):
            try:
                checkpoints.write_pointer(saves_folder(), checkpoints.TRANSFORMERS, state.global_step, path)
                saved = _saved_fields(path)
            except (checkpoints.Damaged, OSError) as error:
                why = str(error)
        if was_asked:
            get_trainer().saving_ends(saved, why)

    def _can_save(self, args):
        """Whether the callback can save outside the Trainer's loop, where a save that fails ends the training."""
        return self._trainer is not None and args.world_size == 1 and hasattr(self._trainer, "_save_checkpoint")

    def _is_updating(self):
        """Whether the model may be changed and the step is not counted yet. The Trainer's count decides, because an
        `on_step_end` of an earlier callback may have failed."""
        return self._updates_from is not None and self._state.global_step == self._updates_from

    def _is_consistent(self, trace):
        return not self._is_updating() and not holders.is_raised_in(trace, OPTIMIZER_MODULES)

    def _save(self):
        """Saves into a temporary folder first: neither an incomplete checkpoint nor the Trainer's own removal of older
        ones may cost a complete one."""
        trainer = self._trainer
        if trainer is None or not self._can_save(trainer.args):
            raise CannotSave("the Trainer can save only at the end of a step, because it was not given to the callback")
        step, output = trainer.state.global_step, os.path.abspath(trainer.args.output_dir)
        name = f"checkpoint-{step}"
        path, temporary_folder = os.path.join(output, name), os.path.join(output, f".antifreeze-{os.getpid()}")
        is_ours = not os.path.isdir(path)
        if is_ours:
            os.makedirs(temporary_folder, exist_ok=True)
            patches = _callbacks.MethodPatches()
            patches.patch(trainer, "_get_output_dir", lambda trial=None: temporary_folder)
            try:
                checkpoints.replace(
                    path, checkpoints.TRANSFORMERS,
                    lambda temporary: trainer._save_checkpoint(trainer.model_wrapped, trial=None),
                    os.path.join(temporary_folder, name),
                )
            finally:
                patches.restore()
                checkpoints.remove(temporary_folder)
        checkpoints.write_pointer(saves_folder(), checkpoints.TRANSFORMERS, step, path, is_ours)
        return _saved_fields(path)

    def _patch_training_step(self, trainer):
        train = trainer.training_step

        def training_step(model, inputs, *rest, **named):
            if not self._splitter.must_split(inputs):
                # Some models remove entries from their inputs.
                original = copy.copy(inputs)
                fits, loss = self._run_whole(trainer, model, lambda: train(model, inputs, *rest, **named))
                if fits:
                    return loss
                inputs = original
            return self._run_split(trainer, train, model, inputs, *rest, **named)

        self._patches.patch(trainer, "training_step", training_step)

    def _run_whole(self, trainer, model, take):
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

    def _run_split(self, trainer, train, model, inputs, num_items_in_batch=None):
        accelerator, device, named = trainer.accelerator, trainer.args.device, {}
        back = accelerator.backward

        def forward(part):
            count = items = _count_items(part)
            if num_items_in_batch is not None:
                # Pass the count of the part, so that the result is its mean whether or not the model divides by it.
                count = _count_labels(trainer, part, num_items_in_batch)
                items = float(count)
            if items == 0:
                return torch.zeros((), device=device, requires_grad=True), 0
            caught, patches = [], _callbacks.MethodPatches()
            patches.patch(accelerator, "backward", lambda loss, **more: caught.append((loss, more)))
            try:
                train(model, part, *([] if num_items_in_batch is None else [count]))
            except Exception as error:
                if caught and not oom.is_out_of_memory(error):
                    raise _UnsupportedStep from error
                raise
            finally:
                patches.restore()
            if len(caught) != 1:
                raise _UnsupportedStep
            [(loss, more)] = caught
            named.update(more)
            return loss * items, items

        share = self._batch_weight(trainer, model, inputs, num_items_in_batch)
        try:
            mean = self._splitter.run_split(forward, inputs, lambda loss: back(loss * share, **named))
        except _UnsupportedStep as error:
            reason = "its training_step does more than one forward and one backward"
            raise self._splitter.refused(reason) from error.__cause__
        # Without any label, the mean is a plain number.
        return torch.as_tensor(share * mean, device=device, dtype=None if torch.is_tensor(mean) else torch.float32)

    def _batch_weight(self, trainer, model, inputs, number):
        """Returns the weight of this batch in a loss that is divided by the labels of all accumulated batches."""
        if number is None:
            return 1.0
        here, total = float(_count_labels(trainer, inputs, number)), float(number)
        if here == total or not here:
            return 1.0
        if self._divides_loss is None:
            self._divides_loss = _divides_loss(trainer, model, inputs, number)
        return here / total if self._divides_loss else 1.0


def _saved_fields(path):
    size = sum(entry.stat().st_size for entry in os.scandir(path) if entry.is_file())
    return {"path": path, "bytes": size, "by": "framework", "kind": checkpoints.TRANSFORMERS}


def _any_rank(is_requested, device):
    """Whether the guard asks any rank for a save: ranks save together."""
    distributed = torch.distributed
    if not (distributed.is_available() and distributed.is_initialized()):
        return is_requested
    asked = torch.tensor(int(is_requested), device=device)
    distributed.all_reduce(asked, op=distributed.ReduceOp.MAX)
    return bool(asked)


class _UnsupportedStep(Exception):
    """The step cannot be interrupted between forward and backward."""


def _runs_backward_itself(trainer):
    """Whether DeepSpeed, or an optimizer that steps during backward, controls the backward."""
    return getattr(trainer, "is_deepspeed_enabled", False) or "lomo" in str(trainer.args.optim).lower()


def _divides_loss(trainer, model, inputs, number):
    """Whether the model divides its loss by `num_items_in_batch`. Many models accept it and ignore it."""
    rows = _split.parts(inputs, _split.length(inputs), 1)
    row = next(row for row in rows if float(_count_labels(trainer, row, number)))
    once = _count_labels(trainer, row, number)
    random = _split.random_state(torch)

    def loss_of(number):
        loss = float(trainer.compute_loss(model, trainer._prepare_inputs(dict(row)), num_items_in_batch=number))
        # Restores the random state for both calls and for the training.
        _split.set_random_state(torch, random)
        return loss

    with torch.no_grad(), trainer.compute_loss_context_manager():
        whole, half = loss_of(once), loss_of(2 * once)
    return abs(whole - 2 * half) < abs(whole - half)


def _count_labels(trainer, batch, like):
    """Returns the number of labels that count, as the Trainer counts them."""
    count = getattr(trainer, "_get_num_items_in_batch", None)
    number = count([batch], trainer.args.device) if count is not None else None
    if number is None:
        number = (batch["labels"] != IGNORED_LABEL).sum()
    return number if torch.is_tensor(like) or not torch.is_tensor(number) else int(number)


def _count_items(batch):
    labels = batch.get("labels") if hasattr(batch, "get") else None
    if torch.is_tensor(labels) and labels.dim() > 1 and not labels.is_floating_point():
        return int((labels != IGNORED_LABEL).sum())
    return _split.length(batch)
