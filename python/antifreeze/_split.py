"""A training step that is taken in parts where it does not fit whole, with the gradients of the whole."""

from __future__ import annotations

import contextlib
import functools
import math
import random
import sys
import warnings
import weakref
from typing import Any, Callable, Iterator, Optional, overload

from . import MemoryPressure
from ._memory import give_back
from ._optimizer import take_step
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
    the model is still as it was.

    With dropout the gradients are equal in distribution only: the parts draw other numbers than the whole. Modules
    that look at the batch as a whole (BatchNorm in training) would learn something else in parts; `batch_norm` is
    "refuse" (the error that there is no memory is raised, with the reason), "warn" or "allow". Of a loss that is no
    sum over items nobody can know; do not use `step` for one. With DistributedDataParallel the ranks reduce
    gradients by hand, and tell each other how it went, if `ddp=True` allows it; otherwise a step that does not fit
    is refused.
    """
    check(batch_norm)
    loss = Step(function, batch, items, backward, batch_norm, ddp, _known_of(function)).take()
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


class Known:
    """Of a function that goes forward: what earlier steps have shown."""

    def __init__(self):
        # The size that fits; None while all did.
        self.fits = None
        self.is_warned = False
        # The modules that it calls, and what has gradients and belongs to none of them.
        self.roots = weakref.WeakKeyDictionary()
        self.loose = []
        # Some are made for one call, as a slice of a Sequential is; what they are made of stays.
        self.norms = weakref.WeakSet()
        self._first_parameters = {}
        self.is_learnt = False

    def note(self, root, state):
        self.roots[root] = state
        norm = sys.modules["torch"].nn.modules.batchnorm._BatchNorm
        self.norms.update(module for module in root.modules() if isinstance(module, norm))
        for parameter in state.parameters[:1]:
            self._first_parameters[id(parameter)] = weakref.ref(parameter)

    def is_of_the_living(self):
        """Not of models that are gone."""
        return any(kept() is not None for kept in [*self._first_parameters.values(), *self.loose])

    def parameters(self):
        own = [parameter for state in self.roots.values() for parameter in state.parameters]
        return own + [tensor for tensor in (kept() for kept in self.loose) if tensor is not None]


class _Root:
    """Of a module: its parameters, and the buffers that it changes; all of them, before that is known."""

    def __init__(self, module):
        self.parameters = list(module.parameters())
        self.buffers = list(module.buffers())
        self.is_learnt = False


_known: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()


def _known_of(function):
    """A function that is defined anew in each step has the same code."""
    code = getattr(getattr(function, "__func__", function), "__code__", function)
    try:
        return _known.setdefault(code, Known())
    except TypeError:
        return Known()


class Step:
    def __init__(self, function, batch, items, backward, batch_norm, ddp, known):
        self._torch = sys.modules.get("torch")
        if self._torch is None:
            raise RuntimeError("antifreeze.step is for PyTorch, which is not imported")
        self._function, self._batch, self._items = function, batch, items
        self._backward = backward or (lambda loss: loss.backward())
        self._batch_norm, self._ddp = batch_norm, ddp
        self._known = known
        if not self._known.is_of_the_living():
            self._known.__init__()
        self._length = length(batch)
        self._error = MemoryError, "no memory"

    def take(self):
        before = _Before(self._torch, self._known)
        reason = self._try_smaller_and_smaller(before)
        if self._ddp:
            reason = self._agree(reason)
        if reason is not None:
            before.restore()
            before.give_back()
            raise oom.again(*self._error, f"antifreeze.step did not take it in parts: {reason}")
        before.finish(self._divisor / self._count if self._count else 1.0)
        if self._ddp:
            _reduce(self._torch, self._known.parameters())
        return self._sum / max(self._count, 1.0)

    def _try_smaller_and_smaller(self, before):
        """Until it fits. Returns why not."""
        known = self._known
        size = self._length if known.fits is None else min(known.fits, self._length)
        while True:
            fits = self._fits(before, size)
            if not fits:
                # Out of the `except`: the error, and with it the frames that held what did not fit, is gone.
                before.restore()
                give_back()
            # Which modules there are may be known only now.
            if not fits or size < self._length:
                reason = self._reason_not_to_split()
                if reason is not None or not fits and size == 1:
                    return reason or "not even one item fits"
                if fits and known.fits != size:
                    report.tell("split", size=size, of=self._length)
                known.fits = size
            if fits:
                return None
            size = (size + 1) // 2

    def _fits(self, before, size):
        self._sum = self._count = 0
        self._divisor = None if size >= self._length else self._length
        try:
            with before.watching(self._ddp):
                for part in parts(self._batch, self._length, size):
                    self._take_part(part, before)
            return True
        except Exception as error:
            if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                before.give_back()
                raise
            # Its words only: the error itself leads to all that did not fit.
            self._error = type(error), str(error)
        return False

    def _take_part(self, part, before):
        loss, count = self._function(part), None
        if isinstance(loss, tuple):
            loss, count = loss
        if (count is None) == (self._items is None):
            raise TypeError("the function returns (the sum of the losses, the number of items), or a mean with items=")
        if count is None:
            count = self._items(part)
            loss = loss * count
        count = float(count)
        if count == 0:
            return
        before.learn(loss)
        # Of a part near a mean, so that small numbers do not overflow; what is missing to it is known at the end.
        self._divisor = self._divisor or count
        self._backward(loss / self._divisor)
        self._sum = self._sum + loss.detach()
        self._count += count

    def _reason_not_to_split(self):
        if not self._ddp and _ranks(self._torch) > 1:
            return "ranks that communicate in each forward have to agree; ddp=True has antifreeze see to that"
        if self._batch_norm != "allow" and any(module.training for module in self._known.norms):
            if self._batch_norm == "refuse":
                return 'BatchNorm would learn from parts of the batch; batch_norm="warn" or "allow" takes it in parts'
            if not self._known.is_warned:
                warnings.warn("steps are taken in parts, and BatchNorm learns from each of them", stacklevel=5)
                self._known.is_warned = True
        return None

    def _agree(self, reason):
        """All ranks go on, or none: whoever waited for one that has failed would wait for ever."""
        torch, distributed = self._torch, self._torch.distributed
        device = next((parameter.device for parameter in self._known.parameters()), None)
        told = torch.tensor([reason is None, self._known.fits or self._length], dtype=torch.int64, device=device)
        distributed.all_reduce(told, distributed.ReduceOp.MIN)
        all_fit, size = told.tolist()
        if size < self._length:
            self._known.fits = size
        if not all_fit and reason is None:
            reason = "it did not fit in another rank"
        return reason


class _Before:
    """What a step finds, to give it to another attempt: gradients, buffers, random numbers."""

    def __init__(self, torch, known):
        self._torch, self._known = torch, known
        self._gradients, self._buffers = {}, []
        self._seen = set()
        self._random = random_state(torch)
        for root, state in list(known.roots.items()):
            self._take(root, state)
        self._set_aside(known.parameters())

    def _take(self, root, state):
        if not state.is_learnt:
            self._seen.update(map(id, root.modules()))
        self._set_aside(state.parameters)
        for buffer in state.buffers:
            self._buffers.append((buffer, buffer._version, buffer.detach().clone()))

    def _set_aside(self, parameters):
        for parameter in parameters:
            # Modules may share one.
            if parameter not in self._gradients:
                self._gradients[parameter] = parameter.grad
                parameter.grad = None

    def learn(self, loss):
        """Before it goes back for the first time: whatever gets a gradient and is of no module."""
        if not self._known.is_learnt:
            loose = [leaf for leaf in _leaves(loss) if leaf not in self._gradients]
            self._known.loose += map(weakref.ref, loose)
            self._set_aside(loose)

    @contextlib.contextmanager
    def watching(self, ddp):
        """In it, modules that nobody has seen yet are taken note of when they are called."""
        with contextlib.ExitStack() as stack:
            pre_hook = self._torch.nn.modules.module.register_module_forward_pre_hook
            self._hook = pre_hook(self._runs)
            stack.callback(self._hook.remove)
            if ddp:
                stack.enter_context(_alone(self._torch))
            yield

    def _runs(self, module, inputs):
        state = self._known.roots.get(module)
        if state is not None and state.is_learnt:
            # As in the steps before. Each call of a module costs less without a hook.
            self._hook.remove()
        elif state is None and id(module) not in self._seen:
            state = _Root(module)
            self._known.note(module, state)
            self._take(module, state)

    def restore(self):
        """For another attempt."""
        for parameter in self._gradients:
            parameter.grad = None
        with self._torch.no_grad():
            for buffer, version, kept in self._buffers:
                if buffer._version != version:
                    buffer.copy_(kept)
        set_random_state(self._torch, self._random)

    def give_back(self):
        """There will be none."""
        for parameter, gradient in self._gradients.items():
            parameter.grad = gradient

    def finish(self, scale):
        """The new gradients, as of a mean, on top of those that were there."""
        changed = {id(buffer) for buffer, version, _ in self._buffers if buffer._version != version}
        for state in self._known.roots.values():
            if not state.is_learnt:
                state.buffers = [buffer for buffer in state.buffers if id(buffer) in changed]
                state.is_learnt = True
        self._known.is_learnt = True
        with self._torch.no_grad():
            for parameter, before in self._gradients.items():
                if parameter.grad is None:
                    parameter.grad = before
                    continue
                if scale != 1.0:
                    parameter.grad.mul_(scale)
                if before is not None:
                    parameter.grad.add_(before)


def _leaves(loss):
    """All that a loss goes back to."""
    todo, seen = [loss.grad_fn], set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        todo.extend(following for following, _ in node.next_functions)


def random_state(torch):
    numpy = sys.modules.get("numpy")
    return (
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None,
        random.getstate(),
        numpy.random.get_state() if numpy else None,
    )


def set_random_state(torch, state):
    cpu, cards, plain, numbers = state
    torch.set_rng_state(cpu)
    if cards is not None:
        torch.cuda.set_rng_state_all(cards)
    random.setstate(plain)
    if numbers is not None:
        sys.modules["numpy"].random.set_state(numbers)


def _ranks(torch):
    distributed = torch.distributed
    is_one_of_many = distributed.is_available() and distributed.is_initialized()
    return distributed.get_world_size() if is_one_of_many else 1


@contextlib.contextmanager
def _alone(torch):
    """In it, a module that is run by several ranks runs as it would in one."""
    parallel = torch.nn.parallel.DistributedDataParallel
    forward = parallel.forward
    parallel.forward = lambda self, *words, **named: self.module(*words, **named)
    try:
        yield
    finally:
        parallel.forward = forward


def _reduce(torch, parameters):
    """The mean of all ranks, in pieces of some size. Whoever has no gradient has one of zeros: all take part."""
    distributed = torch.distributed
    ranks = distributed.get_world_size()
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        distributed.all_reduce(parameter.grad)
        parameter.grad.div_(ranks)


# Batches of any make.


def length(batch: Any) -> int:
    """How many items it holds: the first dimension of its tensors, which have to agree."""
    sizes = set(_sizes(batch))
    if len(sizes) != 1:
        told = "no tensor" if not sizes else f"tensors of {sorted(sizes)} items"
        raise ValueError(f"a batch whose items can be told apart is needed, and this has {told}")
    return sizes.pop()


def _sizes(batch):
    if hasattr(batch, "shape") and hasattr(batch, "__getitem__"):
        if len(batch.shape):
            yield int(batch.shape[0])
    elif hasattr(batch, "items") and hasattr(batch, "keys"):
        for value in batch.values():
            yield from _sizes(value)
    elif isinstance(batch, (tuple, list)):
        for value in batch:
            yield from _sizes(value)


def parts(batch: Any, whole: int, size: int) -> Iterator[Any]:
    """One after the other, none larger than `size`, and all nearly as large."""
    if size >= whole:
        yield batch
        return
    number = math.ceil(whole / size)
    edges = [whole * index // number for index in range(number + 1)]
    for begin, end in zip(edges, edges[1:]):
        yield _cut(batch, slice(begin, end))


def _cut(batch, part):
    if hasattr(batch, "shape") and hasattr(batch, "__getitem__"):
        return batch[part] if len(batch.shape) else batch
    if hasattr(batch, "items") and hasattr(batch, "keys"):
        cut = {key: _cut(value, part) for key, value in batch.items()}
        return cut if type(batch) is dict else type(batch)(cut)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(_cut(value, part) for value in batch))
    if isinstance(batch, (tuple, list)):
        return type(batch)(_cut(value, part) for value in batch)
    return batch
