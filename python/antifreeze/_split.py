"""`antifreeze.step`: a training step that is split into parts when it does not fit into memory, with the gradients of
the whole batch."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from typing import Any, Callable, Optional, overload

from . import MemoryPressure
from ._batch import Batch, length as length, parts as parts
from ._split_cache import SplitCache as SplitCache, modules_held_by, split_cache_for
from ._step_snapshot import (
    StepSnapshot as StepSnapshot, is_compiled, leaf_tensors, random_state as random_state,
    set_random_state as set_random_state,
)
from ._memory import free_unused_memory
from ._optimizer import check_optimizer, run_optimizer_step
from ._ranks import world_size, all_reduce_gradients, all_reduce_min
from ._shim import event_log, oom


def step(
    function: Callable[[Any], Any],
    batch: Any,
    *,
    items: Optional[Callable[[Any], float]] = None,
    backward: Optional[Callable[[Any], object]] = None,
    optimizer: Any = None,
    batch_norm: str = "refuse",
    ddp: bool = False,
) -> Any:
    """Runs forward and backward of one training step, in parts if the whole batch does not fit into memory. The
    gradients equal those of the whole batch up to rounding, if the loss is a sum over the items.

    `function(batch)` runs forward and returns the sum of the losses and the number of items. With `items=` it returns
    the mean loss, and `items(batch)` returns the number of items. It calls neither `backward` nor `zero_grad`.
    Returns the mean loss, detached.

    >>> import torch, antifreeze
    >>> model = torch.nn.Linear(8, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> def forward(batch):
    ...     x, y = batch
    ...     return (model(x) - y).pow(2).sum(), len(x)
    >>> for batch in [(torch.ones(4, 8), torch.ones(4, 1))]:
    ...     optimizer.zero_grad()
    ...     loss = antifreeze.step(forward, batch)
    ...     optimizer.step()

    With `ignore_index` or a mask, return the number of items that count: each part is weighted by it. `backward(loss)`
    replaces `loss.backward()`, for example for a `GradScaler`. The size that fitted is remembered for later steps.

    `optimizer` takes the optimizer's step too. If that runs out of memory, it is tried once more after unused memory
    was freed. With `backward`, pass a function instead, such as `lambda: (scaler.step(optimizer), scaler.update())`.

    The function gets its own containers and must not change tensors of the batch in place. A batch that cannot be
    split runs whole.

    Dropout draws other random numbers in parts, so gradients are equal in distribution only. BatchNorm in training
    computes its statistics over the batch, so parts change it: `batch_norm` is "refuse", "warn" or "allow". With
    DistributedDataParallel, `ddp=True` makes the ranks agree on the size and reduce gradients after the step. Do not
    use `step` if the loss is not a sum over items (contrastive losses, for example): antifreeze cannot detect that.

    Raises the framework's out-of-memory error, with the reason, if the step fits neither whole nor in parts; the
    gradients are then as before. An error of the optimizer's step says whether the model was changed.
    """
    check_batch_norm(batch_norm)
    check_optimizer(optimizer, backward)
    if "torch" not in sys.modules:
        raise RuntimeError("antifreeze.step needs PyTorch, which is not imported")
    loss = SplitStep(function, batch, items, backward, batch_norm, ddp, split_cache_for(function)).run()
    if optimizer is not None:
        run_optimizer_step(optimizer)
    return loss


def check_batch_norm(batch_norm: str) -> None:
    if batch_norm not in ("refuse", "warn", "allow"):
        raise ValueError(f'batch_norm must be "refuse", "warn" or "allow", not {batch_norm!r}')


@overload
def splittable(function: Callable[[Any], Any]) -> Callable[[Any], Any]: ...


@overload
def splittable(**options: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...


def splittable(function: Optional[Callable[[Any], Any]] = None, **options: Any) -> Any:
    """Makes a forward function run a whole training step when it is called, as `step` does. Options and errors are
    those of `step`.

    >>> import torch, antifreeze
    >>> model = torch.nn.Linear(8, 1)
    >>> @antifreeze.splittable
    ... def train_on(batch):
    ...     return model(batch).pow(2).sum(), len(batch)
    >>> loss = train_on(torch.ones(4, 8))
    >>> model.weight.grad.shape
    torch.Size([1, 8])
    """
    if function is None:
        return functools.partial(splittable, **options)

    @functools.wraps(function)
    def run_step(batch):
        return step(function, batch, **options)

    return run_step


class _CannotSplit(Exception):
    """Raised before a part does something that cannot be undone."""


class SplitStep:
    def __init__(self, function, batch, items, backward, batch_norm, ddp, cache):
        self._torch = sys.modules["torch"]
        self._function, self._items = function, items
        self._backward = backward or (lambda loss: loss.backward())
        self._batch_norm, self._ddp = batch_norm, ddp
        self._cache = cache
        if not cache.is_model_alive():
            cache.__init__()
        if cache.hidden_modules is None:
            cache.hidden_modules = [
                weakref.ref(module)
                for module, is_hidden in modules_held_by(function)
                if is_hidden or any(map(is_compiled, module.modules()))
            ]
        self._batch = Batch(batch)
        # Type and message of the last out-of-memory error.
        self._error = MemoryError, "no memory"

    def run(self):
        snapshot = StepSnapshot(self._torch, self._cache)
        try:
            return self._run(snapshot)
        except BaseException:
            snapshot.restore_gradients()
            raise

    def _run(self, snapshot):
        reason = self._run_with_halving(snapshot)
        if self._ddp:
            reason = self._agree_with_ranks(reason, snapshot)
        if reason is not None:
            snapshot.restore()
            raise oom.with_reason(*self._error, f"antifreeze.step did not split it: {reason}")
        snapshot.accumulate_gradients(self._divisor / self._count if self._count else 1.0)
        if self._ddp:
            all_reduce_gradients(self._torch, snapshot.parameters())
        return self._sum / max(self._count, 1.0)

    def _run_with_halving(self, snapshot):
        """Halves the size of the parts until the step fits. Returns None, or the reason why it does not fit."""
        cache, batch = self._cache, self._batch
        # None for the whole batch.
        size = cache.fitting_size
        if size is not None and (batch.reason_not_to_split() or size >= batch.length() or self._reason_not_to_split()):
            size = None
        while True:
            fits = self._try_size(snapshot, size)
            if fits and size is None:
                return None
            # The attempt may have shown modules for the first time.
            reason = self._reason_not_to_split(snapshot)
            if fits and reason is None:
                if cache.fitting_size != size:
                    event_log.log_event("split", size=size, of=batch.length())
                cache.fitting_size = size
                return None
            # The error is gone here, and with it the frames that held what did not fit.
            final_reason = snapshot.reason_not_to_repeat() or batch.reason_not_to_repeat()
            snapshot.restore()
            free_unused_memory()
            if final_reason is not None or reason is not None and size is None:
                return final_reason or reason
            if reason is not None:
                # It must not be split, so try it whole, although an earlier step did not fit whole.
                size = None
                continue
            largest = size or batch.length()
            if largest <= 1:
                return "not even one item fits"
            size = (largest + 1) // 2

    def _try_size(self, snapshot, size):
        self._sum = self._count = 0
        self._is_in_parts = size is not None
        self._divisor = self._batch.length() if self._is_in_parts else None
        try:
            with snapshot.recording(self._ddp):
                for module in filter(None, (hidden() for hidden in self._cache.hidden_modules)):
                    snapshot.record_call(module, is_hidden=True)
                for part in self._batch.parts(size):
                    self._run_part(part, snapshot)
            return True
        except _CannotSplit:
            pass
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Keep the message only: the error's traceback holds everything that did not fit.
            self._error = type(error), str(error)
        return False

    def _run_part(self, part, snapshot):
        loss, count = self._function(part), None
        if isinstance(loss, tuple):
            loss, count = loss
        if (count is None) == (self._items is None) or not self._torch.is_tensor(loss):
            raise TypeError(
                "the function must return (sum of the losses, number of items), or the mean loss if items= is given"
            )
        if count is None:
            count = self._items(part)
            loss = loss * count
        count = float(count)
        if count == 0:
            # The mean over no items would be NaN.
            self._sum = self._sum + self._torch.zeros_like(loss, requires_grad=False)
            return
        # About the mean, so that half-precision gradients do not overflow. The exact factor is applied at the end.
        self._divisor = self._divisor or count
        share = loss / self._divisor
        for leaf in leaf_tensors(share):
            snapshot.record_leaf(leaf)
        if self._is_in_parts and snapshot.has_gradient_hooks():
            raise _CannotSplit
        self._backward(share)
        self._sum = self._sum + loss.detach()
        self._count += count

    def _reason_not_to_split(self, snapshot=None):
        """Judges by the modules that this attempt called, or by those of the last step if there is no snapshot yet."""
        if self._batch.reason_not_to_split() is not None:
            return self._batch.reason_not_to_split()
        if not self._ddp and world_size(self._torch) > 1:
            return "ranks that communicate in each forward must agree on the parts; ddp=True makes antifreeze do that"
        if snapshot is not None and snapshot.has_gradient_hooks():
            return (
                "a hook on a parameter runs as soon as its gradient is accumulated, as an optimizer in backward does; "
                "it would run for the gradient of each part, and may have run already"
            )
        if snapshot is None:
            batch_norms = [reference() for reference in self._cache.batch_norms]
        else:
            batch_norms = snapshot.called_batch_norms.values()
        if self._batch_norm != "allow" and any(module is not None and module.training for module in batch_norms):
            if self._batch_norm == "refuse":
                return 'BatchNorm would use the statistics of each part; batch_norm="warn" or "allow" permits that'
            if not self._cache.has_warned:
                text = "steps are split into parts, and BatchNorm uses the statistics of each part"
                warnings.warn(text, stacklevel=6)
                self._cache.has_warned = True
        return None

    def _agree_with_ranks(self, reason, snapshot):
        """All ranks continue or none does: a rank that waited for a failed one would wait forever."""
        device = next((parameter.device for parameter in snapshot.parameters()), None)
        whole = self._batch.length() if self._batch.reason_not_to_split() is None else 1 << 40
        all_fit, size = all_reduce_min(self._torch, [reason is None, self._cache.fitting_size or whole], device)
        if size < whole:
            self._cache.fitting_size = size
        if not all_fit and reason is None:
            reason = "it did not fit on another rank"
        return reason
