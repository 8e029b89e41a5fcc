"""What a step finds, to give it to another attempt: gradients, buffers, random numbers."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import warnings
import weakref
from typing import Any

from ._ranks import alone

# Buffers with more numbers are kept only if they were seen to change.
LARGE = 1 << 16

# What the thread is at: steps, each within the one before.
_here = threading.local()
_hooked = False


class _Before:
    def __init__(self, torch, known):
        self._torch, self._known = torch, known
        # By id: what it is of, and what was there. Of modules, and of whatever else a loss goes back to.
        self._gradients, self._loose = {}, {}
        self._buffers, self._unkept = [], []
        self._seen, self._modules = set(), []
        # By id: those that were seen, and of them those that were called.
        self._norms, self.called_norms = {}, {}
        self._random = random_state(torch)

    @contextlib.contextmanager
    def watching(self, ddp):
        """In it, modules are taken note of when they are called."""
        _hook(self._torch)
        if not hasattr(_here, "steps"):
            _here.steps = []
        _here.steps.append(self)
        try:
            with alone(self._torch) if ddp else contextlib.nullcontext():
                yield
        finally:
            _here.steps.remove(self)

    def sees(self, module, is_hidden=False):
        """Called when a module is: before it changes anything. With it come all that it is made of."""
        if id(module) not in self._seen:
            self._take(module, is_hidden)
        if self._norms and id(module) in self._norms:
            self.called_norms[id(module)] = module

    def _take(self, module, is_hidden):
        self._seen.add(id(module))
        # As long as it is held, no other gets its id.
        self._modules.append(module)
        for parameter in module._parameters.values():
            if parameter is not None:
                _set_aside(parameter, self._gradients)
        for name, buffer in module._buffers.items():
            self._keep(module, name, buffer)
        is_hidden = is_hidden or _hides(self._torch, module)
        if _is_norm(self._torch, module):
            self._norms[id(module)] = module
            if is_hidden:
                self.called_norms[id(module)] = module
        for child in module._modules.values():
            if child is not None and id(child) not in self._seen:
                self._take(child, is_hidden)

    def _keep(self, module, name, buffer):
        if buffer is None or self._torch.nn.parameter.is_lazy(buffer):
            self._buffers.append((module, name, buffer, None))
        elif buffer.numel() > LARGE and name in self._known.steady.get(module, ()):
            self._unkept.append((module, name, buffer, buffer._version))
        else:
            self._buffers.append((module, name, buffer, (buffer.detach() if buffer.requires_grad else buffer).clone()))

    def goes_back_to(self, leaf):
        """Before its gradient is added to."""
        if id(leaf) not in self._gradients:
            _set_aside(leaf, self._loose)

    def parameters(self):
        """Of modules, in the order in which they were called."""
        loose = [leaf for leaf, _ in self._loose.values() if isinstance(leaf, self._torch.nn.Parameter)]
        return [parameter for parameter, _ in self._gradients.values()] + loose

    def acts_in_backward(self):
        """Whether a hook takes gradients as soon as they are there."""
        return any(
            getattr(leaf, "_post_accumulate_grad_hooks", None)
            for leaf, _ in [*self._gradients.values(), *self._loose.values()]
        )

    def reason_not_to_repeat(self):
        for module, name, buffer, version in self._unkept:
            if buffer._version != version:
                self._known.steady[module].discard(name)
                return f"the buffer {name} of {type(module).__name__} was changed, for the first time, and was not kept"
        return None

    def restore(self):
        """For another attempt."""
        for leaf, _ in [*self._gradients.values(), *self._loose.values()]:
            leaf.grad = None
        # Of what was made on the way, the next attempt makes its own.
        self._loose = {key: (leaf, before) for key, (leaf, before) in self._loose.items() if before is not None}
        with self._torch.no_grad():
            for module, name, buffer, kept in [*self._buffers, *((*of, None) for *of, _ in self._unkept)]:
                if _buffer(module, name) is not buffer:
                    module._buffers[name] = buffer
                if kept is not None:
                    # Always: not all that writes raises the version.
                    buffer.copy_(kept)
                elif buffer is not None and name == "num_batches_tracked" and hasattr(module, "reset_running_stats"):
                    # It had no size yet when it was seen.
                    module.reset_running_stats()
        set_random_state(self._torch, self._random)

    def give_back(self):
        """There will be none."""
        for leaf, before in [*self._gradients.values(), *self._loose.values()]:
            leaf.grad = before

    def finish(self, scale):
        """The new gradients, as of a mean, on top of those that were there."""
        with self._torch.no_grad():
            for leaf, before in [*self._gradients.values(), *self._loose.values()]:
                if before is None and scale == 1.0:
                    continue
                new = leaf.grad
                if new is None:
                    leaf.grad = before
                    continue
                if scale != 1.0:
                    new.mul_(scale)
                if before is not None:
                    leaf.grad = _sum(before, new)
        self._learn()

    def _learn(self):
        known = self._known
        known.norms = [weakref.ref(module) for module in self.called_norms.values()]
        if known.layer is None:
            known.layer = next((weakref.ref(module) for module in self._modules if module._parameters), None)
        for module, name, buffer, kept in self._buffers:
            if kept is not None and kept.numel() > LARGE:
                if _buffer(module, name) is buffer and self._torch.equal(buffer, kept):
                    known.steady.setdefault(module, set()).add(name)
        for module, name, buffer, version in self._unkept:
            if _buffer(module, name) is not buffer or buffer._version != version:
                known.steady[module].discard(name)


def _set_aside(leaf, gradients):
    # Modules may share one.
    if id(leaf) not in gradients:
        gradient = leaf.grad
        gradients[id(leaf)] = leaf, gradient
        if gradient is not None:
            leaf.grad = None


def _buffer(module, name):
    return module._buffers[name] if name in module._buffers else None


def _sum(before, new):
    """In the place of what was there, as backward does it: others may hold it."""
    if before.layout != new.layout and before.layout is not sys.modules["torch"].strided:
        return new.add_(before)
    return before.add_(new)


def _is_norm(torch, module):
    if isinstance(module, torch.jit.ScriptModule):
        # Only the name is left.
        return "BatchNorm" in getattr(module, "original_name", "")
    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm)


def _hides(torch, module):
    """Whether it calls its modules where no hook sees it: in compiled code, or in other threads."""
    if is_compiled(module) or "_orig_mod" in module._modules:
        return True
    return isinstance(module, (torch.jit.ScriptModule, torch.nn.DataParallel))


def is_compiled(module):
    """By `module.compile()`: not even its own call is seen."""
    return module.__dict__.get("_compiled_call_impl") is not None


def _hook(torch):
    """Once and for all: compiled code is guarded by which hooks there are, and would be compiled anew."""
    global _hooked
    if _hooked:
        return
    _hooked = True
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)

    def is_called(module, inputs):
        # The compiler follows all that it sees.
        if is_compiling():
            return
        for before in getattr(_here, "steps", ()):
            before.sees(module)

    torch.nn.modules.module.register_module_forward_pre_hook(is_called)
    # A compiled module warns that it is called as well, besides the one that it was made of.
    warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global hooks")


def leaves(loss: Any):
    """All that a loss goes back to."""
    todo, seen = [loss.grad_fn] if loss.grad_fn is not None else [], set()
    while todo:
        node = todo.pop()
        if type(node).__name__ == "AccumulateGrad":
            yield node.variable
            continue
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)


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
