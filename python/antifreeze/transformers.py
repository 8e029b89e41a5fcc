"""For Hugging Face's Trainer: `trainer.add_callback(antifreeze.transformers.Callback(trainer))`."""

from __future__ import annotations

import os
from typing import Any, Optional

import torch
import transformers

from . import _callbacks, _split
from ._shim import hooks
from ._shim.trainer import trainer as guarded

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
    ...     "trained", max_steps=2, report_to=[], disable_tqdm=True, logging_strategy="no", save_strategy="no", use_cpu=True
    ... )
    >>> trainer = transformers.Trainer(model, arguments, train_dataset=data)
    >>> trainer.add_callback(antifreeze.transformers.Callback(trainer))
    >>> result = trainer.train(resume_from_checkpoint=antifreeze.last_save())
    {...}

    Parts weigh as many labels as count in them, or as many rows as they have. With more than one rank steps are left
    whole. `batch_norm` is as of `antifreeze.step`.
    """

    def __init__(self, trainer: Optional[transformers.Trainer] = None, batch_norm: str = "refuse") -> None:
        self._trainer = trainer
        self._splitting = _callbacks.Splitting(batch_norm)
        self._is_asked = False
        self._divides: Optional[bool] = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        _callbacks.plan(state.max_steps)
        _callbacks.go_on_from(state.global_step)
        hooks.saves_itself = True
        if self._trainer is not None and args.world_size == 1:
            self._hook(self._trainer)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        hooks.saves_itself = False
        if self._trainer is not None:
            vars(self._trainer).pop("training_step", None)

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._is_asked = guarded().is_asked_to_save()
        if self._is_asked:
            guarded().saving_begins()
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self._is_asked:
            self._is_asked = False
            path = os.path.join(args.output_dir, f"checkpoint-{state.global_step}")
            guarded().saving_ends(path if os.path.isdir(path) else None)

    def _hook(self, trainer):
        train, accelerator = trainer.training_step, trainer.accelerator

        def training_step(model, inputs, num_items_in_batch=None):
            back, named = accelerator.backward, {}

            def forward(part):
                count = items = _items(part)
                if num_items_in_batch is not None:
                    # As if the part were all: what comes is its mean, whether the model divides by this or not.
                    count = _labels(trainer, part, num_items_in_batch)
                    items = float(count)
                if items == 0:
                    return torch.zeros((), device=trainer.args.device, requires_grad=True), 0
                caught = []
                accelerator.backward = lambda loss, **more: caught.append((loss, more))
                try:
                    train(model, part, None if num_items_in_batch is None else count)
                finally:
                    del accelerator.backward
                [(loss, more)] = caught
                named.update(more)
                return loss * items, items

            share = self._share(trainer, model, inputs, num_items_in_batch)
            return share * self._splitting.take(forward, inputs, lambda loss: back(loss * share, **named))

        trainer.training_step = training_step

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
