"""Finds by trying how large a batch may be, without taking the machine along."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from typing import Any, Callable, Optional

from . import MemoryPressure
from ._memory import free_unused_memory
from ._shim import oom

# Of what is available, left for everybody else where no guard sees to it.
_LEFT = 0.15


def find_batch_size(
    function: Callable[[int], Any], *, start: int = 1, most: int = 65536, in_process: Optional[bool] = None
) -> int:
    """The largest batch for which `function(size)`, one step with a batch of that size, finds memory. Sizes are doubled
    until one does not fit, and then what lies between is halved. 0 when not even `start` fits.

    >>> import antifreeze
    >>> def one_step(size):
    ...     if size > 1000:
    ...         raise MemoryError
    >>> antifreeze.find_batch_size(one_step)
    1000

    Under `antifreeze run` the wall refuses what would not fit; elsewhere a limit is set for the time of trying, which
    leaves a part of what is available to others. What a trial changed in modules of PyTorch (gradients, buffers), the
    random numbers, and what optimizers of PyTorch changed that step in it (parameters, their state and options) are put
    back; what else it changes is not. Take a little less than what is found: steps differ.

    TensorFlow keeps what it has taken, and may end the process where it finds no memory. So where it is in use sizes
    are tried in processes of their own (`in_process=False`), for which the function has to be one of a module, and
    not inside of another function.
    """
    if start < 1 or most < start:
        raise ValueError("1 <= start <= most")
    if in_process is None:
        in_process = "tensorflow" not in sys.modules
    fits = _fits_here if in_process else _fits_elsewhere
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


def _fits_here(function, size):
    torch = sys.modules.get("torch")
    with _wall(), _as_if_never(torch):
        fits = _try(function, size)
    free_unused_memory()
    return fits


def _try(function, size):
    """Out of the `except`, and of this call, the frames that held what did not fit are gone."""
    try:
        function(size)
    except Exception as error:
        if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
            raise
        return False
    return True


@contextlib.contextmanager
def _as_if_never(torch):
    if torch is None:
        yield
        return
    from ._split import SplitCache, StepSnapshot

    before, optimizers = StepSnapshot(torch, SplitCache()), _Optimizers(torch)
    try:
        with before.recording(False), optimizers.watching():
            yield
    finally:
        optimizers.restore()
        before.restore()
        before.restore_gradients()


class _Optimizers:
    """Those that step meanwhile, with what they change, as it was before: parameters, their own state, and options."""

    def __init__(self, torch):
        self._torch, self._kept = torch, {}

    @contextlib.contextmanager
    def watching(self):
        watch = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
        if watch is None:
            yield
            return
        hook = watch(self._steps)
        try:
            yield
        finally:
            hook.remove()

    def _steps(self, optimizer, words, named):
        if id(optimizer) not in self._kept:
            parameters = [one for group in optimizer.param_groups for one in group["params"]]
            options = [
                {name: self._copied(value) for name, value in group.items() if name != "params"}
                for group in optimizer.param_groups
            ]
            state = {one: self._copied(own) for one, own in optimizer.state.items()}
            self._kept[id(optimizer)] = optimizer, [(one, self._copied(one)) for one in parameters], options, state

    def _copied(self, value):
        """Beside the card, whose memory is what is measured."""
        if isinstance(value, self._torch.Tensor):
            return value.detach().to("cpu", copy=True)
        if isinstance(value, dict):
            return {name: self._copied(inner) for name, inner in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self._copied, value))
        return value

    def restore(self):
        with self._torch.no_grad():
            for optimizer, parameters, options, state in self._kept.values():
                for parameter, kept in parameters:
                    parameter.copy_(kept)
                for group, kept in zip(optimizer.param_groups, options):
                    group.update(kept)
                for parameter in list(optimizer.state):
                    if parameter not in state:
                        del optimizer.state[parameter]
                for parameter, kept in state.items():
                    _put_back(self._torch, optimizer.state[parameter], kept)
        self._kept.clear()


def _put_back(torch, state, kept):
    """Into the same tensors, where they are still there."""
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
def _wall():
    """Where no guard holds one: what is asked for beyond what is there fails, instead of freezing the machine."""
    room = None if os.environ.get("ANTIFREEZE_PAGE") else _available()
    if room is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = _mapped() + int(room * (1 - _LEFT))
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    if soft != resource.RLIM_INFINITY:
        limit = min(limit, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _available():
    return _kilobytes("/proc/meminfo", "MemAvailable:")


def _mapped():
    return _kilobytes("/proc/self/status", "VmData:") or 0


def _kilobytes(path, name):
    try:
        with open(path) as file:
            words = next(line.split() for line in file if line.startswith(name))
    except (OSError, StopIteration):
        return None
    return int(words[1]) * 1024


def _fits_elsewhere(function, size):
    import multiprocessing
    import signal

    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_tell, args=(theirs, function, size))
    try:
        process.start()
    except Exception as error:
        raise ValueError(f"{function!r} cannot be tried in a process of its own: it has to be one of a module") from error
    theirs.close()
    try:
        told = ours.recv()
    except EOFError:
        told = None
    process.join()
    if isinstance(told, Exception):
        raise told
    if told is None and process.exitcode not in (-signal.SIGKILL, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGBUS):
        raise RuntimeError(f"the trial of {size} ended with status {process.exitcode}, and said nothing")
    return bool(told)


def _tell(pipe, function, size):
    """In a process of its own: whether it fits, or the error that it is not about memory."""
    try:
        with _wall():
            pipe.send(_try(function, size))
    except Exception as error:
        pipe.send(RuntimeError(f"{type(error).__name__}: {error}"))
