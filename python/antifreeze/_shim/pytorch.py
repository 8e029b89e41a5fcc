"""PyTorch, from 2.0 on: where its loops wait, go back, step and save."""

import itertools
import sys

import torch
import torch.utils.data.dataloader as dataloader

from . import events, report
from .numbers import Numbers
from .trainer import Trainer

# On a card a value is only there once all that was asked of it is done; so it is seldom asked for.
STRIDE_ON_A_CARD = 64
# Of the gradients, anywhere.
STRIDE_OF_GRADIENTS = 100


def attend():
    watch = Watch()
    loader = dataloader._BaseDataLoaderIter
    events.watch(dataloader.DataLoader, "__iter__", watch.loader_begins, first=True)
    events.watch(loader, "__next__", watch.data_begins, watch.data_ends)
    events.watch(torch.autograd, "backward", watch.backward_begins, watch.backward_ends, first=True)
    events.watch(torch, "save", watch.saving_begins, watch.saving_ends)
    events.watch(torch.nn.utils, "clip_grad_norm_", end=watch.norm_is_known)
    optimizer = torch.optim.Optimizer
    if not events.watch_code(
        _step_code(optimizer), watch.optimizer_begins, watch.optimizer_ends, first=True, anywhere=True
    ):
        module = sys.modules[optimizer.__module__]
        module.register_optimizer_step_pre_hook(watch.before_step)
        module.register_optimizer_step_post_hook(watch.after_step)


def _step_code(optimizer):
    """The code that every step of every optimizer goes through."""
    return optimizer.profile_hook_step(lambda self: None).__code__


class Watch:
    """What is learnt of one process. Before it trains nothing is said: a worker that loads data is no
    trainer."""

    def __init__(self):
        self._trainer = None
        self._numbers = Numbers()
        self._device = None
        self._turns = itertools.count()
        self._batch = None

    def trainer(self):
        if self._trainer is None:
            self._trainer = Trainer("torch", torch.__version__, self._snapshot)
        return self._trainer

    # Loaders.

    def loader_begins(self, loader=None):
        self._batch = getattr(loader, "batch_size", None) or self._batch

    def data_begins(self):
        if self._trainer is not None:
            self._trainer.steps.data_begins()

    def data_ends(self, batch):
        if self._trainer is not None:
            self._trainer.steps.data_ends(torch.is_grad_enabled())

    # Going back.

    def backward_begins(self, root=None):
        trainer = self.trainer()
        trainer.steps.backward_begins()
        loss = root if isinstance(root, torch.Tensor) else root[0] if root else None
        if loss is not None:
            self._look_at(loss, trainer)

    def backward_ends(self, result):
        self.trainer().steps.backward_ends()

    def _look_at(self, loss, trainer):
        if self._device is None:
            self._device = loss.device.type
            trainer.say_hello(self._device, self._batch)
        if self._device != "cpu" and next(self._turns) % STRIDE_ON_A_CARD:
            return
        if loss.numel() == 1:
            self._numbers.loss(loss.item(), trainer.steps.count)

    # Stepping: by the code of Python 3.12 and later, or by hooks before.

    def optimizer_begins(self, arguments):
        self.before_step(arguments[0])

    def optimizer_ends(self, result):
        self.trainer().steps.optimizer_ends()

    def before_step(self, optimizer, *_):
        trainer = self.trainer()
        if trainer.steps.updates % STRIDE_OF_GRADIENTS == STRIDE_OF_GRADIENTS - 1:
            self._look_at_gradients(optimizer, trainer)
        trainer.steps.optimizer_begins(optimizer)

    def after_step(self, optimizer, *_):
        self.trainer().steps.optimizer_ends()

    def _look_at_gradients(self, optimizer, trainer):
        with torch.no_grad():
            gradients = [
                parameter.grad
                for group in optimizer.param_groups
                for parameter in group["params"]
                if parameter.grad is not None and not parameter.grad.is_sparse
            ]
            if gradients:
                norms = torch.stack([norm.float().cpu() for norm in torch._foreach_norm(gradients)])
                self._numbers.gradient(norms.norm().item(), trainer.steps.count)

    def norm_is_known(self, norm):
        if self._trainer is not None and isinstance(norm, torch.Tensor) and norm.device.type == "cpu":
            self._numbers.gradient(norm.item(), self._trainer.steps.count)

    # Saving.

    def saving_begins(self):
        if self._trainer is not None:
            self._trainer.steps.saving_begins()

    def saving_ends(self, result):
        if self._trainer is not None:
            self._trainer.steps.saving_ends()

    def _snapshot(self, frame):
        from . import save

        return save.Snapshot.of(frame, self.trainer().steps)
