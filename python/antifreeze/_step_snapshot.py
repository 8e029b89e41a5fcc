"""Saves what a step starts from, so that a failed step can be repeated: gradients, buffers, random states."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import warnings
import weakref
from typing import Any

from ._ranks import bypass_ddp

# Larger buffers are copied only if an earlier step changed them.
LARGE_BUFFER_NUMEL = 1 << 16

# `snapshots`: those of the steps that run in this thread, outermost first.
_thread = threading.local()
_is_hooked = False


class StepSnapshot:
    def __init__(self, torch, cache):
        self._torch, self._cache = torch, cache
        # id → (tensor, its gradient before the step): parameters of modules, and other leaves of the loss.
        self._module_gradients, self._other_gradients = {}, {}
        self._buffers, self._uncopied_buffers = [], []
        self._recorded, self._modules = set(), []
        # id → BatchNorm module: all that were recorded, and those that were called.
        self._batch_norms, self.called_batch_norms = {}, {}
        self._random = random_state(torch)

    @contextlib.contextmanager
    def recording(self, ddp):
        """Records modules when they are called inside this context."""
        _hook_module_calls(self._torch)
        if not hasattr(_thread, "snapshots"):
            _thread.snapshots = []
        _thread.snapshots.append(self)
        try:
            with bypass_ddp(self._torch) if ddp else contextlib.nullcontext():
                yield
        finally:
            _thread.snapshots.remove(self)

    def record_call(self, module, is_hidden=False):
        """Records a module and its submodules. Called before the module changes anything."""
        if id(module) not in self._recorded:
            self._record_tree(module, is_hidden)
        if self._batch_norms and id(module) in self._batch_norms:
            self.called_batch_norms[id(module)] = module

    def _record_tree(self, module, is_hidden):
        self._recorded.add(id(module))
        # A reference keeps the id unique.
        self._modules.append(module)
        for parameter in module._parameters.values():
            if parameter is not None:
                _stash_gradient(parameter, self._module_gradients)
        for name, buffer in module._buffers.items():
            self._record_buffer(module, name, buffer)
        is_hidden = is_hidden or _hides_calls(self._torch, module)
        if _is_batch_norm(self._torch, module):
            self._batch_norms[id(module)] = module
            if is_hidden:
                self.called_batch_norms[id(module)] = module
        for child in module._modules.values():
            if child is not None and id(child) not in self._recorded:
                self._record_tree(child, is_hidden)

    def _record_buffer(self, module, name, buffer):
        if buffer is None or self._torch.nn.parameter.is_lazy(buffer):
            self._buffers.append((module, name, buffer, None))
        elif buffer.numel() > LARGE_BUFFER_NUMEL and name in self._cache.unchanged_buffers.get(module, ()):
            self._uncopied_buffers.append((module, name, buffer, buffer._version))
        else:
            self._buffers.append((module, name, buffer, (buffer.detach() if buffer.requires_grad else buffer).clone()))

    def record_leaf(self, leaf):
        """Records the gradient of a leaf tensor before backward adds to it."""
        if id(leaf) not in self._module_gradients:
            _stash_gradient(leaf, self._other_gradients)

    def parameters(self):
        """Returns the parameters of the recorded modules in call order, then those that the loss alone leads to."""
        others = [leaf for leaf, _ in self._other_gradients.values() if isinstance(leaf, self._torch.nn.Parameter)]
        return [parameter for parameter, _ in self._module_gradients.values()] + others

    def has_gradient_hooks(self):
        """Whether a hook acts on a gradient as soon as it is accumulated."""
        return any(
            getattr(leaf, "_post_accumulate_grad_hooks", None)
            for leaf, _ in [*self._module_gradients.values(), *self._other_gradients.values()]
        )

    def reason_not_to_repeat(self):
        for module, name, buffer, version in self._uncopied_buffers:
            if buffer._version != version:
                self._cache.unchanged_buffers[module].discard(name)
                return (
                    f"the buffer {name} of {type(module).__name__} was changed for the first time, and was not saved"
                )
        return None

    def restore(self):
        """Restores everything for another attempt."""
        for leaf, _ in [*self._module_gradients.values(), *self._other_gradients.values()]:
            leaf.grad = None
        # Leaves that the failed attempt created are created again by the next one.
        self._other_gradients = {
            key: (leaf, before) for key, (leaf, before) in self._other_gradients.items() if before is not None
        }
        with self._torch.no_grad():
            for module, name, buffer, saved in [*self._buffers, *((*of, None) for *of, _ in self._uncopied_buffers)]:
                if _current_buffer(module, name) is not buffer:
                    module._buffers[name] = buffer
                if saved is not None:
                    # Unconditionally: a write through `.data` does not raise the version.
                    buffer.copy_(saved)
                elif buffer is not None and name == "num_batches_tracked" and hasattr(module, "reset_running_stats"):
                    # The module was lazy when it was recorded, so it had no size yet.
                    module.reset_running_stats()
        set_random_state(self._torch, self._random)

    def restore_gradients(self):
        """Puts the gradients of before the step back. Called when there is no further attempt."""
        for leaf, before in [*self._module_gradients.values(), *self._other_gradients.values()]:
            leaf.grad = before

    def accumulate_gradients(self, scale):
        """Multiplies the new gradients by `scale` and adds them to those of before the step."""
        with self._torch.no_grad():
            for leaf, before in [*self._module_gradients.values(), *self._other_gradients.values()]:
                if before is None and scale == 1.0:
                    continue
                new = leaf.grad
                if new is None:
                    leaf.grad = before
                    continue
                if scale != 1.0:
                    new.mul_(scale)
                if before is not None:
                    leaf.grad = _add_gradients(before, new)
        self._update_cache()

    def _update_cache(self):
        cache = self._cache
        cache.batch_norms = [weakref.ref(module) for module in self.called_batch_norms.values()]
        if cache.layer is None:
            cache.layer = next((weakref.ref(module) for module in self._modules if module._parameters), None)
        for module, name, buffer, saved in self._buffers:
            if saved is not None and saved.numel() > LARGE_BUFFER_NUMEL:
                if _current_buffer(module, name) is buffer and self._torch.equal(buffer, saved):
                    cache.unchanged_buffers.setdefault(module, set()).add(name)
        for module, name, buffer, version in self._uncopied_buffers:
            if _current_buffer(module, name) is not buffer or buffer._version != version:
                cache.unchanged_buffers[module].discard(name)


def _stash_gradient(leaf, gradients):
    # Modules may share a parameter.
    if id(leaf) not in gradients:
        gradient = leaf.grad
        gradients[id(leaf)] = leaf, gradient
        if gradient is not None:
            leaf.grad = None


def _current_buffer(module, name):
    return module._buffers[name] if name in module._buffers else None


def _add_gradients(before, new):
    """Adds in place, as backward does: the script may hold a reference to the gradient."""
    if before.layout != new.layout and before.layout is not sys.modules["torch"].strided:
        return new.add_(before)
    return before.add_(new)


def _is_batch_norm(torch, module):
    if isinstance(module, torch.jit.ScriptModule):
        # Scripting keeps only the name of the class.
        return "BatchNorm" in getattr(module, "original_name", "")
    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm)


def _hides_calls(torch, module):
    """Whether the module calls its submodules where no hook sees it: in compiled code or in other threads."""
    if is_compiled(module) or "_orig_mod" in module._modules:
        return True
    return isinstance(module, (torch.jit.ScriptModule, torch.nn.DataParallel))


def is_compiled(module):
    """Whether `module.compile()` was called: then no hook sees the call of the module itself."""
    return module.__dict__.get("_compiled_call_impl") is not None


def _hook_module_calls(torch):
    """Registers the hook once and never removes it: a change of the hooks makes `torch.compile` compile again."""
    global _is_hooked
    if _is_hooked:
        return
    _is_hooked = True
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or (lambda: False)

    def before_call(module, inputs):
        # The compiler traces through the hook.
        if is_compiling():
            return
        for snapshot in getattr(_thread, "snapshots", ()):
            snapshot.record_call(module)

    torch.nn.modules.module.register_module_forward_pre_hook(before_call)
    # A compiled module warns about global hooks, although the module it was compiled from calls them.
    warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)` when there are global hooks")


def leaf_tensors(loss: Any):
    """Yields the leaf tensors that the graph of a loss leads to."""
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
    """Returns the states of all random number generators in use, for `set_random_state`."""
    numpy = sys.modules.get("numpy")
    return (
        torch.get_rng_state(),
        torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None,
        random.getstate(),
        numpy.random.get_state() if numpy else None,
    )


def set_random_state(torch, state):
    cpu, gpus, python, numpy = state
    torch.set_rng_state(cpu)
    if gpus is not None:
        torch.cuda.set_rng_state_all(gpus)
    random.setstate(python)
    if numpy is not None:
        sys.modules["numpy"].random.set_state(numpy)
