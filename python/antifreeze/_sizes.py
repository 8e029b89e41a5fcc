"""`antifreeze.find_batch_size`: finds the largest batch that fits by trying, without freezing the machine."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Any, Callable, Optional

from . import MemoryPressure
from ._memory import free_unused_memory
from ._shim import oom

# Share of the available memory that stays free for other programs where no guard keeps it.
_FREE_SHARE = 0.15


def find_batch_size(
    function: Callable[[int], Any], *, start: int = 1, most: int = 65536, in_process: Optional[bool] = None
) -> int:
    """Returns the largest batch size, from `start` to `most`, for which `function(size)` does not run out of memory.
    The function runs one step with a batch of that size. Returns 0 if not even `start` fits.

    >>> import antifreeze
    >>> def one_step(size):
    ...     if size > 1000:
    ...         raise MemoryError
    >>> antifreeze.find_batch_size(one_step)
    1000

    Sizes are doubled until one does not fit; then binary search finds the limit. Use a little less than the result,
    because steps differ. Under `antifreeze run` the wall refuses what does not fit; elsewhere a temporary memory limit
    does. After each trial, gradients and buffers of PyTorch modules, random states, and the parameters, state and
    options of PyTorch optimizers are restored; other changes are not.

    TensorFlow does not return memory, and may abort when it runs out. If it is imported, each size is tried in a new
    process (`in_process=False`); the function must then be defined at the top level of a module.

    Raises ValueError if the sizes are invalid or the function cannot be sent to a process, RuntimeError if such a
    process fails, and every error of the function that is not about memory.
    """
    if start < 1 or most < start:
        raise ValueError(f"start must be at least 1 and most at least start, not {start} and {most}")
    if in_process is None:
        in_process = "tensorflow" not in sys.modules
    fits = _fits_in_process if in_process else _fits_in_new_process
    if not fits(function, start):
        return 0
    low, high = start, start * 2
    while high <= most and fits(function, high):
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(function, middle):
            low = middle
        else:
            high = middle
    return low


def _fits_in_process(function, size):
    torch = sys.modules.get("torch")
    with _memory_limit(), _restoring_state(torch):
        fits = _try(function, size)
    free_unused_memory()
    return fits


def _try(function, size):
    """Returns whether it fits. After the return, the frames that held what did not fit are gone."""
    try:
        function(size)
    except Exception as error:
        if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
            raise
        return False
    return True


@contextlib.contextmanager
def _restoring_state(torch):
    if torch is None:
        yield
        return
    from ._split import SplitCache, StepSnapshot

    before, optimizers = StepSnapshot(torch, SplitCache()), _OptimizerStates(torch)
    try:
        with before.recording(False), optimizers.recording():
            yield
    finally:
        optimizers.restore()
        before.restore()
        before.restore_gradients()


class _OptimizerStates:
    """Records optimizers when they step, and restores their parameters, state and options."""

    def __init__(self, torch):
        self._torch, self._saved = torch, {}

    @contextlib.contextmanager
    def recording(self):
        watch = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
        if watch is None:
            yield
            return
        hook = watch(self._record)
        try:
            yield
        finally:
            hook.remove()

    def _record(self, optimizer, words, named):
        if id(optimizer) not in self._saved:
            parameters = [one for group in optimizer.param_groups for one in group["params"]]
            options = [
                {name: self._copy_to_cpu(value) for name, value in group.items() if name != "params"}
                for group in optimizer.param_groups
            ]
            state = {one: self._copy_to_cpu(own) for one, own in optimizer.state.items()}
            copies = [(one, self._copy_to_cpu(one)) for one in parameters]
            self._saved[id(optimizer)] = optimizer, copies, options, state

    def _copy_to_cpu(self, value):
        """Copies to the CPU, because the GPU's memory is what the trial measures."""
        if isinstance(value, self._torch.Tensor):
            return value.detach().to("cpu", copy=True)
        if isinstance(value, dict):
            return {name: self._copy_to_cpu(inner) for name, inner in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self._copy_to_cpu, value))
        return value

    def restore(self):
        with self._torch.no_grad():
            for optimizer, parameters, options, state in self._saved.values():
                for parameter, kept in parameters:
                    parameter.copy_(kept)
                for group, kept in zip(optimizer.param_groups, options):
                    group.update(kept)
                for parameter in list(optimizer.state):
                    if parameter not in state:
                        del optimizer.state[parameter]
                for parameter, kept in state.items():
                    _restore_in_place(self._torch, optimizer.state[parameter], kept)
        self._saved.clear()


def _restore_in_place(torch, state, kept):
    """Restores in place where the tensors still exist."""
    for name in list(state):
        if name not in kept:
            del state[name]
    for name, value in kept.items():
        now = state.get(name)
        is_tensor = isinstance(value, torch.Tensor) and isinstance(now, torch.Tensor)
        if is_tensor and now.shape == value.shape and now.dtype == value.dtype:
            now.copy_(value)
        else:
            state[name] = value


@contextlib.contextmanager
def _memory_limit():
    """Sets a memory limit if there is no guard, so that requests fail instead of freezing the machine."""
    available = None if os.environ.get("ANTIFREEZE_PAGE") else _available_bytes()
    if available is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _data_bytes() + int(available * (1 - _FREE_SHARE))
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _available_bytes():
    return _read_proc_bytes("/proc/meminfo", "MemAvailable:")


def _data_bytes():
    return _read_proc_bytes("/proc/self/status", "VmData:") or 0


def _read_proc_bytes(path, name):
    try:
        with open(path) as file:
            words = next(line.split() for line in file if line.startswith(name))
    except (OSError, StopIteration):
        return None
    return int(words[1]) * 1024


def _fits_in_new_process(function, size):
    import multiprocessing
    import signal

    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_result, args=(sender, function, size))
    try:
        process.start()
    except Exception as error:
        raise ValueError(
            f"{function!r} cannot run in a new process: it must be defined at the top level of a module"
        ) from error
    sender.close()
    try:
        result = receiver.recv()
    except EOFError:
        result = None
    process.join()
    if isinstance(result, Exception):
        raise result
    if result is None and process.exitcode not in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
        raise RuntimeError(f"the trial with size {size} ended with exit status {process.exitcode} and no result")
    return bool(result)


def _send_result(pipe, function, size):
    """Runs in the new process: sends whether the size fits, or an error that is not about memory."""
    try:
        with _memory_limit():
            pipe.send(_try(function, size))
    except Exception as error:
        pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))
