"""PyTorch 2.1 and later: detects when a loop waits for data, runs backward, steps and saves."""

import sys
import time

import torch
import torch.utils.data.dataloader as dataloader

from . import call_hooks, event_log
from .loss_watch import LossWatch
from .page import BACKWARD, UNKNOWN, OPTIMIZER, PHASE
from .trainer import CHECK_INTERVAL_SECONDS, get_trainer

# The time that reading the loss takes, in seconds, and the share of a step's time that it may take.
LOSS_READ_SECONDS, MAX_READ_SHARE = 100e-6, 0.002
# On a GPU, reading a value waits for all queued work, so it is done rarely.
GPU_LOSS_STRIDE_STEPS = 64
# Steps between two checks of the gradients.
GRADIENT_STRIDE_STEPS = 100
# Shorter steps are observed for OBSERVED_SECONDS, then only counted for about REST_SECONDS.
SHORT_STEP_SECONDS, OBSERVED_SECONDS, REST_SECONDS = 0.005, 0.25, 4.0


def observe():
    watch = TorchWatch()
    loader = dataloader._BaseDataLoaderIter
    call_hooks.hook_calls(dataloader.DataLoader, "__iter__", watch.loader_begins, takes=1)
    watch.watch_data(call_hooks.hook_calls(loader, "__next__"))
    watch.watch_backward(call_hooks.hook_calls(torch.autograd, "backward", ends=False))
    call_hooks.hook_calls(torch, "save", watch.saving_begins, watch.saving_ends)
    watch.watch_optimizers(sys.modules[torch.optim.Optimizer.__module__])


class TorchWatch:
    """Observes the PyTorch training of this process."""

    def __init__(self):
        self._trainer = get_trainer()
        self._steps = self._trainer.steps
        node = getattr(torch._C, "_current_autograd_node", None)
        if node is not None:
            self._steps.is_within_backward = lambda: node() is not None
        self._loss_watch = LossWatch()
        self._device = None
        self._batch = None
        self._data_hook = self._backward_hook = None
        # Installs the hook for the begin of optimizer steps, and the handle that removes it.
        self._hook_optimizer_begin = self._optimizer_begin_hook = None
        self._woke_at = 0.0
        # The steps at which loss and gradients are checked next.
        self._loss_due = self._gradients_due = 0
        self._steps.inspect_due, self._steps.inspect = 0, self._inspect

    def watch_data(self, hook):
        self._data_hook = hook
        hook.begin = self._steps.data_begins
        self._steps.bind_data(hook)

    def watch_backward(self, hook):
        self._backward_hook = hook
        self._read_next_loss()

    # Loaders.

    def loader_begins(self, loader=None):
        self._batch = getattr(loader, "batch_size", None) or self._batch

    # Backward. Usually only the phase is set; from time to time the loss is read.

    def _read_next_loss(self):
        self._steps.unbind_phase(self._backward_hook, "begin")
        self._backward_hook.begin, self._backward_hook.takes = self._backward_begins, 1
        self._backward_hook.set_enabled(True)

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
            self._loss_watch.check_loss(loss.item(), steps.count)
        stride = int(LOSS_READ_SECONDS / MAX_READ_SHARE / max(self._trainer.step_time, 1e-6))
        if self._device != "cpu":
            stride = max(stride, GPU_LOSS_STRIDE_STEPS)
        if self._steps.on_wake is not None:
            self._backward_hook.set_enabled(False)
        if stride > 1:
            self._loss_due = steps.count + stride
            steps.inspect_due = min(self._loss_due, self._gradients_due)
            self._backward_hook.takes = 0
            steps.bind_phase(self._backward_hook, "begin", BACKWARD)

    # Stepping.

    def watch_optimizers(self, module):
        steps = self._steps

        def begins(optimizer, args, kwargs):
            steps.words[PHASE] = OPTIMIZER

        self._hook_optimizer_begin = lambda: module.register_optimizer_step_pre_hook(begins)
        self._optimizer_begin_hook = self._hook_optimizer_begin()
        module.register_optimizer_step_post_hook(steps.optimizer_ends)
        self._trainer.next_check_delay = self._next_check_delay

    def _next_check_delay(self, now, step_time):
        steps = self._steps
        if step_time < SHORT_STEP_SECONDS and steps.has_plain_optimizers and now - self._woke_at > OBSERVED_SECONDS:
            self._stop_observing()
            # A varying delay, so that it does not run in step with the guard's reads.
            return REST_SECONDS * (0.5 + now * 1000 % 1)
        return CHECK_INTERVAL_SECONDS

    def _stop_observing(self):
        self._steps.on_wake = self._resume_observing
        # The caller may be the hook of the data loader.
        self._steps.unbind_data()
        self._data_hook.set_enabled(False)
        self._backward_hook.set_enabled(False)
        self._optimizer_begin_hook.remove()
        self._steps.words[PHASE] = UNKNOWN
        # The loss that was due is skipped; the next one is read.
        self._loss_due = self._steps.inspect_due = self._steps.count

    def _resume_observing(self):
        self._steps.on_wake = None
        self._woke_at = time.monotonic()
        self._steps.bind_data(self._data_hook)
        self._data_hook.set_enabled(True)
        self._backward_hook.set_enabled(True)
        self._optimizer_begin_hook = self._hook_optimizer_begin()

    def _inspect(self, optimizer):
        if not isinstance(optimizer, torch.optim.Optimizer):
            return
        count = self._steps.count
        if count >= self._loss_due:
            self._read_next_loss()
            self._loss_due = sys.maxsize
        if count >= self._gradients_due:
            if self._gradients_due == 0:
                self._report_model(optimizer)
            self._check_gradients(optimizer)
            self._gradients_due = count + GRADIENT_STRIDE_STEPS
        self._steps.inspect_due = min(self._loss_due, self._gradients_due)

    def _check_gradients(self, optimizer):
        with event_log.suppress_faults("checking gradients"), torch.no_grad():
            gradients = [
                parameter.grad
                for group in optimizer.param_groups
                for parameter in group["params"]
                if parameter.grad is not None and not parameter.grad.is_sparse
            ]
            if gradients:
                norms = torch.stack([norm.float().cpu() for norm in torch._foreach_norm(gradients)])
                self._loss_watch.check_gradient(norms.norm().item(), self._steps.count)

    def _report_model(self, optimizer):
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

        return save.save_training(frame, self._steps)
