"""PyTorch, from 2.1 on: where its loops wait, go back, step and save."""

import sys
import time

import torch
import torch.utils.data.dataloader as dataloader

from . import call_hooks, event_log
from .loss_watch import LossWatch
from .page import BACKWARD, UNKNOWN, OPTIMIZER, PHASE
from .trainer import CHECK_INTERVAL_SECONDS, get_trainer

# What a look at the loss takes, in seconds, and the part of a step's time that it may take.
LOOK, SHARE = 100e-6, 0.002
# On a card a value is only there once all that was asked of it is done; so it is seldom asked for.
STRIDE_ON_A_CARD = 64
# Of the gradients, anywhere.
STRIDE_OF_GRADIENTS = 100
# Steps shorter than this are looked at for so many seconds, and then for so many only counted.
SHORT_STEP, AWAKE, RESTS = 0.005, 0.25, 4.0


def attend():
    watch = Watch()
    loader = dataloader._BaseDataLoaderIter
    call_hooks.hook_calls(dataloader.DataLoader, "__iter__", watch.loader_begins, takes=1)
    watch.watch_data(call_hooks.hook_calls(loader, "__next__"))
    watch.watch_backward(call_hooks.hook_calls(torch.autograd, "backward", ends=False))
    call_hooks.hook_calls(torch, "save", watch.saving_begins, watch.saving_ends)
    watch.watch_optimizers(sys.modules[torch.optim.Optimizer.__module__])


class Watch:
    """What is learnt of one process."""

    def __init__(self):
        self._trainer = get_trainer()
        self._steps = self._trainer.steps
        node = getattr(torch._C, "_current_autograd_node", None)
        if node is not None:
            self._steps.is_within_backward = lambda: node() is not None
        self._numbers = LossWatch()
        self._device = None
        self._batch = None
        self._data = self._backward = None
        # Puts the hook in that says that an optimizer begins; and what takes it out again.
        self._hear_begin = self._begin = None
        self._woke = 0.0
        # The steps at which loss and gradients are looked at next.
        self._loss_due = self._gradients_due = 0
        self._steps.inspect_due, self._steps.inspect = 0, self._now_and_then

    def watch_data(self, mark):
        self._data = mark
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
        self._backward.put(True)

    def _backward_begins(self, root=None):
        steps = self._steps
        steps.end_pending_step()
        if steps.on_wake is None:
            steps.words[PHASE] = BACKWARD
        loss = root if isinstance(root, torch.Tensor) else root[0] if root else None
        if loss is None:
            return
        if self._device is None:
            self._device = loss.device.type
            steps.set_training_thread()
            dtype = str(loss.dtype).replace("torch.", "")
            self._trainer.report_framework("torch", torch.__version__, self._device, dtype, self._batch)
        if loss.numel() == 1:
            self._numbers.loss(loss.item(), steps.count)
        stride = int(LOOK / SHARE / max(self._trainer.step_time, 1e-6))
        if self._device != "cpu":
            stride = max(stride, STRIDE_ON_A_CARD)
        if self._steps.wakes is not None:
            self._backward.put(False)
        if stride > 1:
            self._loss_due = steps.count + stride
            steps.inspect_due = min(self._loss_due, self._gradients_due)
            self._backward.takes = 0
            steps.bind_phase(self._backward, "begin", BACKWARD)

    # Stepping.

    def watch_optimizers(self, module):
        steps = self._steps

        def begins(optimizer, args, kwargs):
            steps.words[PHASE] = OPTIMIZER

        self._hear_begin = lambda: module.register_optimizer_step_pre_hook(begins)
        self._begin = self._hear_begin()
        module.register_optimizer_step_post_hook(steps.optimizer_ends)
        self._trainer.next_check_delay = self._next_check_delay

    def _next_check_delay(self, now, step_time):
        steps = self._steps
        if step_time < SHORT_STEP and steps.has_plain_optimizers and now - self._woke > AWAKE:
            self._rest()
            # Not in time with who looks at it.
            return RESTS * (0.5 + now * 1000 % 1)
        return CHECK_INTERVAL_SECONDS

    def _rest(self):
        self._steps.wakes = self._wake
        # It may be a wait for data that we are called from.
        self._steps.unbind_data()
        self._data.put(False)
        self._backward.put(False)
        self._begin.remove()
        self._steps.words[PHASE] = UNKNOWN
        # A loss that was to be looked at is not: the next one is.
        self._loss_due = self._steps.inspect_due = self._steps.count

    def _wake(self):
        self._steps.wakes = None
        self._woke = time.monotonic()
        self._steps.bind_data(self._data)
        self._data.put(True)
        self._backward.put(True)
        self._begin = self._hear_begin()

    def _now_and_then(self, optimizer):
        if not isinstance(optimizer, torch.optim.Optimizer):
            return
        count = self._steps.count
        if count >= self._loss_due:
            self._look_at_next_loss()
            self._loss_due = sys.maxsize
        if count >= self._gradients_due:
            if self._gradients_due == 0:
                self._first_step(optimizer)
            self._look_at_gradients(optimizer)
            self._gradients_due = count + STRIDE_OF_GRADIENTS
        self._steps.inspect_due = min(self._loss_due, self._gradients_due)

    def _look_at_gradients(self, optimizer):
        with event_log.suppress_faults("looking at gradients"), torch.no_grad():
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
        event_log.log_event(
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
