"""`antifreeze.wrap`: measures how long the training waits for a loader, and the memory of its workers."""

from __future__ import annotations

import collections
import contextlib
import os
import sys
import threading
import time
import warnings
from typing import Any, Iterator

from . import MemoryPressure
from ._memory import free_unused_memory
from ._shim import oom
from ._tools import _bytes

# Batches between two checks.
_CHECK_INTERVAL_BATCHES = 20
# Waiting for data is reported above this share of the time.
_MAX_WAIT_SHARE = 0.4
# Growth of the workers' memory is reported above this ratio and size.
_MAX_WORKER_GROWTH_RATIO = 1.3
_MAX_WORKER_GROWTH_BYTES = 200 << 20
# Pauses before each further attempt at a batch: the workers free memory when they finish their batches.
_RETRY_DELAYS_SECONDS = (0.0, 0.5, 2.0)


def wrap(loader: Any, *, warn: bool = True) -> Wrapped:
    """Wraps a data loader: measures how it is used, and warns once about each problem. The result is used like the
    loader; `stats` has the measurements.

    >>> import antifreeze
    >>> loader = antifreeze.wrap([1, 2, 3])
    >>> sum(loader), len(loader), loader.stats.batches
    (6, 3, 3)

    It warns if the training waits for data, if batches do not fit into `/dev/shm`, if workers are forked from a process
    with threads, and if the workers' memory grows because they copy Python objects. `warn=False` turns that off.

    If a worker of PyTorch's `DataLoader` runs out of memory, this process fetches the same batch again. If that fails
    three times, the out-of-memory error is raised. With an `IterableDataset` or `in_order=False` it is raised at once.

    Code that checks the class of a loader (Accelerate's `prepare`, `fit` of Keras) needs the loader itself. Wrap what
    `prepare` returns.
    """
    return Wrapped(loader, warn)


class Stats:
    """Measurements in seconds and bytes. `waited` is the time until a batch arrived, `worked` the time until the next
    one was requested."""

    def __init__(self):
        self.batches = 0
        self.waited = self.worked = 0.0
        # The largest batch, and what all workers may hold ready at once.
        self.batch_bytes = self.bytes_in_flight = 0
        # Private memory of all workers together.
        self.worker_bytes = 0
        # Batches that ran out of memory at the first attempt.
        self.fetched_again = 0

    @property
    def input_bound(self) -> float:
        """The share of the time that the training waited for data."""
        whole = self.waited + self.worked
        return self.waited / whole if whole else 0.0

    def __repr__(self):
        return (
            f"{self.batches} batches of up to {self.batch_bytes:,} bytes; waited for {self.input_bound:.0%} of the "
            f"time; {self.bytes_in_flight:,} bytes in flight; workers hold {self.worker_bytes:,} bytes"
        )


class Wrapped:
    def __init__(self, loader: Any, warn: bool) -> None:
        self._loader, self._warns = loader, warn
        self._said: set[str] = set()
        self._first_look: Any = None
        self.stats = Stats()

    def __getattr__(self, name: str) -> Any:
        # Special methods, such as those for copying, are not those of the loader; and while a copy is made there is no
        # loader yet.
        if name == "_loader" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __bool__(self) -> bool:
        return bool(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._check_start()
        stats = self.stats
        before = time.perf_counter()
        with _recording_indices(self._loader):
            batches = iter(self._loader)
        # The first batch is always waited for, because the workers start.
        first = True
        while True:
            try:
                batch = self._next_batch(batches)
            except StopIteration:
                return
            came = time.perf_counter()
            if not first:
                stats.waited += came - before
            first = False
            stats.batches += 1
            self._check_batch(batch, batches)
            before = time.perf_counter()
            yield batch
            now = time.perf_counter()
            stats.worked += now - before
            before = now

    def _next_batch(self, batches):
        sampler = getattr(batches, "_index_sampler", None)
        indices = sampler.waiting if isinstance(sampler, _RecordingSampler) else ()
        refused = None
        try:
            return next(batches)
        except Exception as error:
            if not indices or isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Keep the message only: the error's traceback holds everything that did not fit.
            refused = type(error), str(error)
            if self._workers() and "in DataLoader worker process" not in refused[1]:
                # A worker died, or this process was short of memory: the loader has not moved on, and may still return
                # this batch.
                raise
        finally:
            # Batches arrive in the order in which they were requested.
            index = indices.popleft() if indices else None
        for delay in _RETRY_DELAYS_SECONDS:
            free_unused_memory()
            time.sleep(delay)
            try:
                batch = _fetch(self._loader, index)
            except Exception as error:
                if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                    raise
                refused = type(error), str(error)
            else:
                self.stats.fetched_again += 1
                return batch
        attempts = len(_RETRY_DELAYS_SECONDS) + 1
        raise oom.with_reason(*refused, f"the loader ran out of memory for this batch in {attempts} attempts")

    def _check_start(self):
        context = getattr(self._loader, "multiprocessing_context", None)
        # Daemon threads mostly belong to libraries, which handle forks.
        others = sum(not thread.daemon for thread in threading.enumerate()) - 1
        if self._workers() and others > 0 and _forks(context):
            self._warn_once(
                "fork",
                f"workers are forked while {others} other thread{'s run' if others > 1 else ' runs'}: locks held there "
                'stay locked in the workers, which may hang. multiprocessing_context="forkserver" avoids that',
            )

    def _check_batch(self, batch, batches):
        stats = self.stats
        size = _bytes(batch)
        if size > stats.batch_bytes:
            stats.batch_bytes = size
            ahead = self._workers() * (getattr(self._loader, "prefetch_factor", None) or 1)
            stats.bytes_in_flight = size * ahead
            free = _free_shm_bytes()
            if ahead and free is not None and stats.bytes_in_flight > free:
                self._warn_once(
                    "shm",
                    f"{ahead} batches of {_megabytes(size)} may be in /dev/shm, which has {_megabytes(free)} free: use "
                    "fewer workers, a lower prefetch_factor, or a larger /dev/shm",
                )
        if stats.batches % _CHECK_INTERVAL_BATCHES == 0:
            self._check_workers(batches)
            if stats.input_bound > _MAX_WAIT_SHARE:
                self._warn_once(
                    "slow",
                    f"the training waited for data {stats.input_bound:.0%} of the time: use more workers, or prepare "
                    "the data in advance",
                )

    def _check_workers(self, batches):
        pids = [process.pid for process in getattr(batches, "_workers", ())]
        held = sum(_private_bytes(pid) for pid in pids)
        self.stats.worker_bytes = held
        if self._first_look is None or self._first_look[0] != pids:
            self._first_look = pids, held
            return
        before = self._first_look[1]
        if held > _MAX_WORKER_GROWTH_RATIO * before and held - before > _MAX_WORKER_GROWTH_BYTES:
            self._warn_once(
                "copies",
                f"the workers' private memory grew from {_megabytes(before)} to {_megabytes(held)}: reading Python "
                "objects copies them in each worker. Keep samples in arrays or tensors instead of lists of objects",
            )

    def _workers(self):
        return getattr(self._loader, "num_workers", 0) or 0

    def _warn_once(self, what, text):
        if self._warns and what not in self._said:
            self._said.add(what)
            warnings.warn(text, stacklevel=4)


@contextlib.contextmanager
def _recording_indices(loader):
    """Inside it, a DataLoader creates iterators that record the indices they request."""
    data = sys.modules.get("torch.utils.data")
    is_known = data is not None and isinstance(loader, data.DataLoader)
    if not is_known or type(loader).__iter__ is not data.DataLoader.__iter__:
        yield
        return
    # If batches arrive in any order, it is unknown which one failed.
    is_in_order = not loader.num_workers or getattr(loader, "in_order", True)
    if isinstance(loader.dataset, data.IterableDataset) or not is_in_order:
        yield
        return
    name = "sampler" if loader.batch_sampler is None else "batch_sampler"
    sampler = getattr(loader, name)
    # A DataLoader refuses to assign the attribute.
    vars(loader)[name] = _RecordingSampler(sampler)
    try:
        yield
    finally:
        vars(loader)[name] = sampler


class _RecordingSampler:
    """A sampler that keeps the indices it yielded until their batch arrived."""

    def __init__(self, sampler):
        self._sampler = sampler
        self.waiting = collections.deque()

    def __getattr__(self, name):
        return getattr(self._sampler, name)

    def __len__(self):
        return len(self._sampler)

    def __iter__(self):
        self.waiting.clear()
        for index in self._sampler:
            self.waiting.append(index)
            yield index


def _fetch(loader, index):
    """Fetches a batch as a worker would."""
    if loader.batch_sampler is None:
        return loader.collate_fn(loader.dataset[index])
    several = getattr(loader.dataset, "__getitems__", None)
    return loader.collate_fn(several(index) if several else [loader.dataset[one] for one in index])


def _forks(context):
    import multiprocessing

    method = getattr(context, "_name", None) or multiprocessing.get_start_method(allow_none=True)
    return (method or multiprocessing.get_all_start_methods()[0]) == "fork"


def _private_bytes(pid):
    """Returns the private memory of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            lines = [line.split() for line in file if line.startswith(("Private_Dirty:", "Private_Clean:"))]
    except OSError:
        return 0
    return 1024 * sum(int(words[1]) for words in lines)


def _free_shm_bytes():
    try:
        disk = os.statvfs("/dev/shm")
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def _megabytes(number):
    return f"{number / 1e6:.0f} MB"
