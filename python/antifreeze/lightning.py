"""For Lightning: `Trainer(callbacks=[antifreeze.lightning.Callback()])`."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from typing import Any, Callable, Optional

import torch

from . import _callbacks, _split

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as lightning
else:
    import lightning.pytorch as lightning


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

    In parts, `training_step` is called for each of them, and its loss has to be a mean over the items; `items(batch)`
    tells their number, where it is not that of rows. With `split=False`, with more than one rank, and where the
    optimization is not automatic, steps are left whole. `batch_norm` is as of `antifreeze.step`.
    """

    def __init__(
        self, split: bool = True, items: Optional[Callable[[Any], float]] = None, batch_norm: str = "refuse"
    ) -> None:
        self._splits, self._items = split, items or _split.length
        self._splitting = _callbacks.Splitting(batch_norm)
        self._saving = _callbacks.Saving()
        self._given: Any = None
        self._result: Any = None
        self._hooked: Any = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        _callbacks.plan(trainer.estimated_stepping_batches)
        _callbacks.go_on_from(trainer.global_step)
        self._saving.by(lambda: self._save(trainer))
        if self._splits and pl_module.automatic_optimization and trainer.world_size == 1:
            self._hook(trainer, pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        result, self._result = self._result, None
        if result is not None and isinstance(outputs, dict):
            outputs.update(result)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._end()

    def _end(self):
        self._saving.end()
        if self._hooked is not None:
            module, self._hooked = self._hooked, None
            del module.training_step, module.backward

    def _save(self, trainer):
        folder = os.environ.get("ANTIFREEZE_SAVES") or trainer.default_root_dir
        path = os.path.join(folder, f"step-{trainer.global_step}.ckpt")
        trainer.save_checkpoint(path)
        return path

    # Lightning goes forward, forgets the gradients of the step before, and goes back. All of it is done when it goes
    # back, where gradients are as they have to be; what it is given before stands for a loss that is not known yet.

    def _hook(self, trainer, module):
        train, back = module.training_step, module.backward

        @functools.wraps(train)
        def training_step(batch, *rest):
            self._given = batch, rest
            return torch.ones((), device=module.device, requires_grad=True)

        @functools.wraps(back)
        def backward(loss, *arguments, **named):
            if self._given is None:
                return back(loss, *arguments, **named)
            # What Lightning has multiplied it with, for mixed precision and accumulated batches.
            scale = loss.detach()
            (batch, rest), self._given = self._given, None

            def forward(part):
                with _as_in_training_step(trainer, module):
                    result = train(part, *rest)
                if result is None:
                    return torch.zeros((), device=module.device, requires_grad=True), 0
                more = {} if torch.is_tensor(result) else result
                loss = more["loss"] if more else result
                self._result = {**more, "loss": loss.detach()}
                count = self._items(part)
                return loss * count, count

            mean = self._splitting.take(forward, batch, lambda loss: back(loss * scale, *arguments, **named))
            if self._result is not None and torch.is_tensor(mean):
                self._result["loss"] = mean

        module.training_step, module.backward = training_step, backward
        self._hooked = module


@contextlib.contextmanager
def _as_in_training_step(trainer, module):
    """`self.log` and mixed precision go by where they are."""
    before = getattr(module, "_current_fx_name", None)
    module._current_fx_name = "training_step"
    try:
        with trainer.precision_plugin.train_step_context():
            yield
    finally:
        module._current_fx_name = before
