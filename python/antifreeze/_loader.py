"""A loader that knows how long it is waited for, and what its workers take."""

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

# Batches after which something can be said, and between two looks at the workers.
_FEW = 20
# Of the time, waited for data, that is worth a word.
_MUCH = 0.4
# By how much workers grow, together, that is more than what they need to begin with.
_GREW = 1.3
_GREW_BYTES = 200 << 20
# Seconds before each further attempt at a batch: workers that are at theirs give memory back when they are done.
_PAUSES = (0.0, 0.5, 2.0)


def wrap(loader: Any, *, warn: bool = True) -> Wrapped:
    """Measures how a loader is used, and warns once of each thing that is wrong with it. It is used like the loader
    itself; `wrapped.stats` tells what was seen.

    >>> import antifreeze
    >>> loader = antifreeze.wrap([1, 2, 3])
    >>> sum(loader), len(loader), loader.stats.batches
    (6, 3, 3)

    It warns of training that waits for its data, of batches that do not fit into `/dev/shm`, of workers that are forked
    from a process with threads, and of workers whose memory grows because they copy what they were given.

    A batch of PyTorch's `DataLoader` for which a worker, or this process, found no memory is fetched once more, here, in
    its turn: nothing is left out. Of a dataset without indices (`IterableDataset`), and of workers whose batches may
    come in any order (`in_order=False`), the error is raised as ever.

    Whatever knows a loader by its class (Accelerate's `prepare`, `fit` of Keras) has to be given the loader itself.
    Wrap what `prepare` returns.
    """
    return Wrapped(loader, warn)


class Stats:
    """Seconds and bytes. `waited` is the time until a batch came, `worked` the time until the next was asked for."""

    def __init__(self):
        self.batches = 0
        self.waited = self.worked = 0.0
        # The largest batch, and what workers may have ready at once.
        self.batch_bytes = self.bytes_in_flight = 0
        # Of all workers together, that they share with nobody.
        self.worker_bytes = 0
        # Batches for which there was no memory at first.
        self.fetched_again = 0

    @property
    def input_bound(self) -> float:
        """The share of the time in which the training waited for data."""
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
        # What Python asks for by itself, to copy this as an example, is not meant for the loader; and while a copy is
        # made there is none.
        if name == "_loader" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __bool__(self) -> bool:
        return bool(self._loader)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._look_before()
        stats = self.stats
        before = time.perf_counter()
        with _noting(self._loader):
            batches = iter(self._loader)
        # Workers start, and the first of their batches is waited for, whatever they do.
        first = True
        while True:
            try:
                batch = self._next(batches)
            except StopIteration:
                return
            came = time.perf_counter()
            if not first:
                stats.waited += came - before
            first = False
            stats.batches += 1
            self._look_at(batch, batches)
            before = time.perf_counter()
            yield batch
            now = time.perf_counter()
            stats.worked += now - before
            before = now

    def _next(self, batches):
        noted = getattr(batches, "_index_sampler", None)
        asked_for = noted.waiting if isinstance(noted, _Noted) else ()
        refused = None
        try:
            return next(batches)
        except Exception as error:
            if not asked_for or isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                raise
            # Its words only: the error itself leads to all that did not fit.
            refused = type(error), str(error)
            if self._workers() and "in DataLoader worker process" not in refused[1]:
                # A worker that is gone, or memory that was short here: the loader has not gone on to the next, and
                # may give this one yet.
                raise
        finally:
            # They come in the order in which they were asked for.
            index = asked_for.popleft() if asked_for else None
        for pause in _PAUSES:
            free_unused_memory()
            time.sleep(pause)
            try:
                batch = _fetch(self._loader, index)
            except Exception as error:
                if isinstance(error, MemoryPressure) or not oom.is_out_of_memory(error):
                    raise
                refused = type(error), str(error)
            else:
                self.stats.fetched_again += 1
                return batch
        raise oom.with_reason(*refused, f"the loader found no memory for this batch, {len(_PAUSES) + 1} times")

    def _look_before(self):
        context = getattr(self._loader, "multiprocessing_context", None)
        # Daemons are mostly those of libraries, which know about forks.
        others = sum(not thread.daemon for thread in threading.enumerate()) - 1
        if self._workers() and others > 0 and _forks(context):
            self._say(
                "fork",
                f"workers are forked while {others} other thread{'s' * (others > 1)} are there: what these hold locked stays "
                'locked in the workers for ever. multiprocessing_context="forkserver" avoids it',
            )

    def _look_at(self, batch, batches):
        stats = self.stats
        size = _bytes(batch)
        if size > stats.batch_bytes:
            stats.batch_bytes = size
            ahead = self._workers() * (getattr(self._loader, "prefetch_factor", None) or 1)
            stats.bytes_in_flight = size * ahead
            free = _shm_free()
            if ahead and free is not None and stats.bytes_in_flight > free:
                self._say(
                    "shm",
                    f"{ahead} batches of {_megabytes(size)} may wait in /dev/shm, which has {_megabytes(free)} left: fewer "
                    "workers, a lower prefetch_factor, or a larger /dev/shm",
                )
        if stats.batches % _FEW == 0:
            self._look_at_workers(batches)
            if stats.input_bound > _MUCH:
                self._say(
                    "slow",
                    f"the training waited for its data for {stats.input_bound:.0%} of the time: more workers, or data "
                    "that is prepared before",
                )

    def _look_at_workers(self, batches):
        pids = [process.pid for process in getattr(batches, "_workers", ())]
        held = sum(_own_bytes(pid) for pid in pids)
        self.stats.worker_bytes = held
        if self._first_look is None or self._first_look[0] != pids:
            self._first_look = pids, held
            return
        before = self._first_look[1]
        if held > _GREW * before and held - before > _GREW_BYTES:
            self._say(
                "copies",
                f"the workers' own memory grew from {_megabytes(before)} to {_megabytes(held)}: reading Python objects "
                "copies them, once for each worker. Keep samples in arrays or tensors instead of lists of objects",
            )

    def _workers(self):
        return getattr(self._loader, "num_workers", 0) or 0

    def _say(self, what, text):
        if self._warns and what not in self._said:
            self._said.add(what)
            warnings.warn(text, stacklevel=4)


@contextlib.contextmanager
def _noting(loader):
    """In it, a loader of PyTorch makes iterators that note what they ask for."""
    data = sys.modules.get("torch.utils.data")
    is_known = data is not None and isinstance(loader, data.DataLoader)
    if not is_known or type(loader).__iter__ is not data.DataLoader.__iter__:
        yield
        return
    # Of batches that come in any order nobody knows which one did not.
    is_in_order = not loader.num_workers or getattr(loader, "in_order", True)
    if isinstance(loader.dataset, data.IterableDataset) or not is_in_order:
        yield
        return
    name = "sampler" if loader.batch_sampler is None else "batch_sampler"
    sampler = getattr(loader, name)
    # It refuses to be given another one by assignment, which is meant for what lasts.
    vars(loader)[name] = _Noted(sampler)
    try:
        yield
    finally:
        vars(loader)[name] = sampler


class _Noted:
    """A sampler; what it gave is kept until the batch has come."""

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
    """As a worker would."""
    if loader.batch_sampler is None:
        return loader.collate_fn(loader.dataset[index])
    several = getattr(loader.dataset, "__getitems__", None)
    return loader.collate_fn(several(index) if several else [loader.dataset[one] for one in index])


def _forks(context):
    import multiprocessing

    method = getattr(context, "_name", None) or multiprocessing.get_start_method(allow_none=True)
    return (method or multiprocessing.get_all_start_methods()[0]) == "fork"


def _own_bytes(pid):
    """That it shares with nobody; 0 of one that has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            lines = [line.split() for line in file if line.startswith(("Private_Dirty:", "Private_Clean:"))]
    except OSError:
        return 0
    return 1024 * sum(int(words[1]) for words in lines)


def _shm_free():
    try:
        disk = os.statvfs("/dev/shm")
    except OSError:
        return None
    return disk.f_bavail * disk.f_frsize


def _megabytes(number):
    return f"{number / 1e6:.0f} MB"
