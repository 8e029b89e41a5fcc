"""PyTorch, from 2.0 on: where its loops wait, go back, step and save."""

import itertools
import sys

import torch
import torch.utils.data.dataloader as dataloader

from . import events, report
from .numbers import Numbers
from .trainer import trainer

# On a card a value is only there once all that was asked of it is done; so it is seldom asked for.
STRIDE_ON_A_CARD = 64
# Of the gradients, anywhere.
STRIDE_OF_GRADIENTS = 100


def attend():
    watch = Watch()
    loader = dataloader._BaseDataLoaderIter
    events.watch(dataloader.DataLoader, "__iter__", watch.loader_begins, takes=1)
    events.watch(loader, "__next__", watch.data_begins, watch.data_ends)
    events.watch(torch.autograd, "backward", watch.backward_begins, watch.backward_ends, takes=1)
    events.watch(torch, "save", watch.saving_begins, watch.saving_ends)
    events.watch(torch.nn.utils, "clip_grad_norm_", end=watch.norm_is_known)
    optimizer = torch.optim.Optimizer
    if not events.watch_code(
        _step_code(optimizer), watch.optimizer_begins, watch.optimizer_ends, takes=1, anywhere=True
    ):
        module = sys.modules[optimizer.__module__]
        module.register_optimizer_step_pre_hook(watch.before_step)
        module.register_optimizer_step_post_hook(watch.after_step)


def _step_code(optimizer):
    """The code that every step of every optimizer goes through."""
    return optimizer.profile_hook_step(lambda self: None).__code__


class Watch:
    """What is learnt of one process."""

    def __init__(self):
        self._trainer = trainer()
        self._steps = self._trainer.steps
        self._numbers = Numbers()
        self._device = None
        self._turns = itertools.count()
        self._batch = None
        self._has_stepped = False

    # Loaders.

    def loader_begins(self, loader=None):
        self._batch = getattr(loader, "batch_size", None) or self._batch

    def data_begins(self):
        self._steps.data_begins()

    def data_ends(self, batch):
        self._steps.data_ends(torch.is_grad_enabled())

    # Going back.

    def backward_begins(self, root=None):
        self._steps.backward_begins()
        loss = root if isinstance(root, torch.Tensor) else root[0] if root else None
        if loss is not None:
            self._look_at(loss)

    def backward_ends(self, result):
        self._steps.backward_ends()

    def _look_at(self, loss):
        if self._device is None:
            self._device = loss.device.type
            dtype = str(loss.dtype).replace("torch.", "")
            self._trainer.trains("torch", torch.__version__, self._device, dtype, self._batch)
        if self._device != "cpu" and next(self._turns) % STRIDE_ON_A_CARD:
            return
        if loss.numel() == 1:
            self._numbers.loss(loss.item(), self._steps.count)

    # Stepping: by the code of Python 3.12 and later, or by hooks before.

    def optimizer_begins(self, arguments):
        self.before_step(arguments[0])

    def optimizer_ends(self, result):
        self._steps.optimizer_ends(result is not events.FAILED)

    def before_step(self, optimizer, *_):
        if not self._has_stepped:
            self._first_step(optimizer)
        if self._steps.updates % STRIDE_OF_GRADIENTS == STRIDE_OF_GRADIENTS - 1:
            self._look_at_gradients(optimizer)
        self._steps.optimizer_begins(optimizer)

    def after_step(self, optimizer, *_):
        self._steps.optimizer_ends()

    def _first_step(self, optimizer):
        self._has_stepped = True
        self._trainer.save = self._save
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        report.tell(
            "model", optimizer=type(optimizer).__name__, parameters=sum(one.numel() for one in parameters),
            bytes=sum(one.numel() * one.element_size() for one in parameters),
        )

    def _look_at_gradients(self, optimizer):
        with torch.no_grad():
            gradients = [
                parameter.grad
                for group in optimizer.param_groups
                for parameter in group["params"]
                if parameter.grad is not None and not parameter.grad.is_sparse
            ]
            if gradients:
                norms = torch.stack([norm.float().cpu() for norm in torch._foreach_norm(gradients)])
                self._numbers.gradient(norms.norm().item(), self._steps.count)

    def norm_is_known(self, norm):
        if isinstance(norm, torch.Tensor) and norm.device.type == "cpu":
            self._numbers.gradient(norm.item(), self._steps.count)

    # Saving.

    def saving_begins(self):
        self._steps.saving_begins()

    def saving_ends(self, result):
        self._steps.saving_ends()

    def _save(self, frame):
        from . import save

        return save.save(frame, self._steps)
