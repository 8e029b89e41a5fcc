"""PyTorch, from 2.1 on: where its loops wait, go back, step and save."""

import sys

import torch
import torch.utils.data.dataloader as dataloader

from . import events, report
from .numbers import Numbers
from .page import BACKWARD, PHASE
from .trainer import trainer

# What a look at the loss takes, in seconds, and the part of a step's time that it may take.
LOOK, SHARE = 10e-6, 0.003
# On a card a value is only there once all that was asked of it is done; so it is seldom asked for.
STRIDE_ON_A_CARD = 64
# Of the gradients, anywhere.
STRIDE_OF_GRADIENTS = 100


def attend():
    watch = Watch()
    loader = dataloader._BaseDataLoaderIter
    events.watch(dataloader.DataLoader, "__iter__", watch.loader_begins, takes=1)
    watch.watch_data(events.watch(loader, "__next__"))
    watch.watch_backward(events.watch(torch.autograd, "backward"))
    events.watch(torch, "save", watch.saving_begins, watch.saving_ends)
    module = sys.modules[torch.optim.Optimizer.__module__]
    module.register_optimizer_step_pre_hook(watch.optimizer_begins)
    module.register_optimizer_step_post_hook(events.hook(watch.optimizer_ends))


class Watch:
    """What is learnt of one process."""

    def __init__(self):
        self._trainer = trainer()
        self._steps = self._trainer.steps
        node = getattr(torch._C, "_current_autograd_node", None)
        if node is not None:
            self._steps.is_within_backward = lambda: node() is not None
        self._numbers = Numbers()
        self._device = None
        self._batch = None
        self._backward = None
        # The steps at which loss and gradients are looked at next, and the earlier of the two.
        self._loss_due = self._gradients_due = self._due = 0

    def watch_data(self, mark):
        mark.begin = self._steps.data_begins
        self._steps.bind_data(mark)

    def watch_backward(self, mark):
        self._backward = mark
        self._look_at_next_loss()

    # Loaders.

    def loader_begins(self, loader=None):
        self._batch = getattr(loader, "batch_size", None) or self._batch

    # Going back. Most of the time it is only said; now and then the loss is looked at.

    def _look_at_next_loss(self):
        self._steps.unbind(self._backward, "begin")
        self._backward.begin, self._backward.takes = self._backward_begins, 1

    def _backward_begins(self, root=None):
        steps = self._steps
        steps.settle()
        steps.words[PHASE] = BACKWARD
        loss = root if isinstance(root, torch.Tensor) else root[0] if root else None
        if loss is None:
            return
        if self._device is None:
            self._device = loss.device.type
            steps.trains_here()
            dtype = str(loss.dtype).replace("torch.", "")
            self._trainer.trains("torch", torch.__version__, self._device, dtype, self._batch)
        if loss.numel() == 1:
            self._numbers.loss(loss.item(), steps.count)
        stride = int(LOOK / SHARE / max(self._trainer.step_time, 1e-6))
        if self._device != "cpu":
            stride = max(stride, STRIDE_ON_A_CARD)
        if stride > 1:
            self._loss_due = steps.count + stride
            self._due = min(self._loss_due, self._gradients_due)
            self._backward.takes = 0
            steps.bind(self._backward, "begin", BACKWARD)

    # Stepping.

    def optimizer_begins(self, optimizer, *_):
        self._steps.optimizer_begins()

    def optimizer_ends(self, optimizer, *_):
        steps = self._steps
        steps.optimizer_ends(optimizer)
        if steps.count >= self._due:
            self._now_and_then(optimizer)

    def _now_and_then(self, optimizer):
        count = self._steps.count
        if count >= self._loss_due:
            self._look_at_next_loss()
            self._loss_due = sys.maxsize
        if count >= self._gradients_due:
            if self._gradients_due == 0:
                self._first_step(optimizer)
            self._look_at_gradients(optimizer)
            self._gradients_due = count + STRIDE_OF_GRADIENTS
        self._due = min(self._loss_due, self._gradients_due)

    def _look_at_gradients(self, optimizer):
        with report.safely("looking at gradients"), torch.no_grad():
            gradients = [
                parameter.grad
                for group in optimizer.param_groups
                for parameter in group["params"]
                if parameter.grad is not None and not parameter.grad.is_sparse
            ]
            if gradients:
                norms = torch.stack([norm.float().cpu() for norm in torch._foreach_norm(gradients)])
                self._numbers.gradient(norms.norm().item(), self._steps.count)

    def _first_step(self, optimizer):
        self._trainer.save = self._save
        parameters = [one for group in optimizer.param_groups for one in group["params"]]
        report.tell(
            "model", optimizer=type(optimizer).__name__, parameters=sum(one.numel() for one in parameters),
            bytes=sum(one.numel() * one.element_size() for one in parameters),
        )

    # Saving.

    def saving_begins(self):
        self._steps.saving_begins()

    def saving_ends(self):
        self._steps.saving_ends()

    def _save(self, frame):
        from . import save

        return save.save(frame, self._steps)
