"""A training step that is taken in parts where it does not fit whole, with the gradients of the whole."""

from __future__ import annotations

import functools
import sys
import warnings
import weakref
from typing import Any, Callable, Optional, overload

from . import MemoryPressure
from ._batch import Batch, length as length, parts as parts
from ._before import _Before, is_compiled, leaves, random_state as random_state, set_random_state as set_random_state
from ._known import Known as Known, known_of, modules_of
from ._memory import give_back
from ._optimizer import check_optimizer, take_step
from ._ranks import number_of_ranks, reduce_gradients, smallest
from ._shim import oom, report


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
    """Runs one training step, forward and backward, and takes it in parts if there is no memory for the whole. The
    gradients are those of the whole batch, to rounding, where the loss is a sum over its items.

    `function(batch)` goes forward and returns the sum of the losses and the number of items it is of; or, with
    `items=`, the mean, and `items(batch)` is their number. It calls neither `backward` nor `zero_grad`. Returns the
    mean loss, detached.

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

    Where items are counted by the loss, as with `ignore_index`, return that count: parts weigh what they hold.
    `backward` is called with each loss instead of `loss.backward()`, such as for a `GradScaler`. What fitted is
    remembered, and later steps begin with it.

    With `optimizer` its step is taken too. If there is no memory for it, as for the state that many optimizers make in
    their first step, it is tried once more with what could be given back; then the error is raised, which says whether
    the model is still as it was. With `backward` it has to be a function that takes the step, such as
    `lambda: (scaler.step(optimizer), scaler.update())`.

    The function gets containers of its own, and does not change tensors of the batch in place. A batch that cannot be
    cut runs whole, and is refused, with the reason, where it does not fit.

    With dropout the gradients are equal in distribution only: the parts draw other numbers than the whole. Modules
    that look at the batch as a whole (BatchNorm in training) would learn something else in parts; `batch_norm` is
    "refuse" (the error that there is no memory is raised, with the reason), "warn" or "allow". Of a loss that is no
    sum over items nobody can know; do not use `step` for one. With DistributedDataParallel the ranks reduce
    gradients by hand, and tell each other how it went, if `ddp=True` allows it; otherwise a step that does not fit
    is refused.
    """
    check(batch_norm)
    check_optimizer(optimizer, backward)
    if "torch" not in sys.modules:
        raise RuntimeError("antifreeze.step is for PyTorch, which is not imported")
    loss = Step(function, batch, items, backward, batch_norm, ddp, known_of(function)).take()
    if optimizer is not None:
        take_step(optimizer)
    return loss


def check(batch_norm: str) -> None:
    if batch_norm not in ("refuse", "warn", "allow"):
        raise ValueError(f'batch_norm is "refuse", "warn" or "allow", not {batch_norm!r}')


@overload
def splittable(function: Callable[[Any], Any]) -> Callable[[Any], Any]: ...


@overload
def splittable(**options: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]: ...


def splittable(function: Optional[Callable[[Any], Any]] = None, **options: Any) -> Any:
    """Makes a function that goes forward take a whole step when it is called, in parts where it must. See `step`.

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
    def takes_step(batch):
        return step(function, batch, **options)

    return takes_step


class _NotInParts(Exception):
    """Seen before anything is done that could not be undone."""


class Step:
    def __init__(self, function, batch, items, backward, batch_norm, ddp, known):
        self._torch = sys.modules["torch"]
        self._function, self._items = function, items
        self._backward = backward or (lambda loss: loss.backward())
        self._batch_norm, self._ddp = batch_norm, ddp
        self._known = known
        if not known.is_of_the_living():
            known.__init__()
        if known.hidden is None:
            known.hidden = [
                weakref.ref(module)
                for module, is_hidden in modules_of(function)
                if is_hidden or any(map(is_compiled, module.modules()))
            ]
        self._batch = Batch(batch)
        self._error = MemoryError, "no memory"

    def take(self):
        before = _Before(self._torch, self._known)
        try:
            return self._take(before)
        except BaseException:
            before.give_back()
            raise

    def _take(self, before):
        reason = self._try_smaller_and_smaller(before)
        if self._ddp:
            reason = self._agree(reason, before)
        if reason is not None:
            before.restore()
            raise oom.again(*self._error, f"antifreeze.step did not take it in parts: {reason}")
        before.finish(self._divisor / self._count if self._count else 1.0)
        if self._ddp:
            reduce_gradients(self._torch, before.parameters())
        return self._sum / max(self._count, 1.0)

    def _try_smaller_and_smaller(self, before):
        """Until it fits. Returns why not."""
        known, batch = self._known, self._batch
        # None for the whole.
        size = known.fits
        if size is not None and (batch.why_whole() or size >= batch.length() or self._reason_not_to_split()):
            size = None
        while True:
            fits = self._fits(before, size)
            if fits and size is None:
                return None
            # Which modules there are may be known only now.
            reason = self._reason_not_to_split(before)
            if fits and reason is None:
                if known.fits != size:
                    report.tell("split", size=size, of=batch.length())
                known.fits = size
                return None
            # Out of the `except`: the error, and with it the frames that held what did not fit, is gone.
            no_more = before.reason_not_to_repeat() or batch.reason_not_to_repeat()
            before.restore()
            give_back()
            if no_more is not None or reason is not None and size is None:
                return no_more or reason
            if reason is not None:
                # Not in parts: then the whole, which a step before did not fit.
                size = None
                continue
            largest = size or batch.length()
            if largest <= 1:
                return "not even one item fits"
            size = (largest + 1) // 2

    def _fits(self, before, size):
        self._sum = self._count = 0
        self._is_in_parts = size is not None
        self._divisor = self._batch.length() if self._is_in_parts else None
        try:
            with before.watching(self._ddp):
                for module in filter(None, (hidden() for hidden in self._known.hidden)):
                    before.sees(module, is_hidden=True)
                for part in self._batch.parts(size):
                    self._take_part(part, before)
            return True
        except _NotInParts:
            pass
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Its words only: the error itself leads to all that did not fit.
            self._error = type(error), str(error)
        return False

    def _take_part(self, part, before):
        loss, count = self._function(part), None
        if isinstance(loss, tuple):
            loss, count = loss
        if (count is None) == (self._items is None) or not self._torch.is_tensor(loss):
            raise TypeError("the function returns (the sum of the losses, the number of items), or a mean with items=")
        if count is None:
            count = self._items(part)
            loss = loss * count
        count = float(count)
        if count == 0:
            # A mean of nothing is no number.
            self._sum = self._sum + self._torch.zeros_like(loss, requires_grad=False)
            return
        # Of a part near a mean, so that small numbers do not overflow; what is missing to it is known at the end.
        self._divisor = self._divisor or count
        share = loss / self._divisor
        for leaf in leaves(share):
            before.goes_back_to(leaf)
        if self._is_in_parts and before.acts_in_backward():
            raise _NotInParts
        self._backward(share)
        self._sum = self._sum + loss.detach()
        self._count += count

    def _reason_not_to_split(self, before=None):
        """By what this attempt has called, or, before the first one, the step before."""
        if self._batch.why_whole() is not None:
            return self._batch.why_whole()
        if not self._ddp and number_of_ranks(self._torch) > 1:
            return "ranks that communicate in each forward have to agree; ddp=True has antifreeze see to that"
        if before is not None and before.acts_in_backward():
            return (
                "a hook of a parameter acts as soon as its gradient is there, as an optimizer within backward does; "
                "it would act on that of each part, and may have acted already"
            )
        norms = [norm() for norm in self._known.norms] if before is None else before.called_norms.values()
        if self._batch_norm != "allow" and any(module is not None and module.training for module in norms):
            if self._batch_norm == "refuse":
                return 'BatchNorm would learn from parts of the batch; batch_norm="warn" or "allow" takes it in parts'
            if not self._known.is_warned:
                warnings.warn("steps are taken in parts, and BatchNorm learns from each of them", stacklevel=6)
                self._known.is_warned = True
        return None

    def _agree(self, reason, before):
        """All ranks go on, or none: whoever waited for one that has failed would wait for ever."""
        device = next((parameter.device for parameter in before.parameters()), None)
        whole = self._batch.length() if self._batch.why_whole() is None else 1 << 40
        all_fit, size = smallest(self._torch, [reason is None, self._known.fits or whole], device)
        if size < whole:
            self._known.fits = size
        if not all_fit and reason is None:
            reason = "it did not fit in another rank"
        return reason
