"""Real loaders of PyTorch: what is wrong with them is said once, and nothing of what is right."""

import copy
import os
import pickle
import signal
import threading
import time
import unittest
import warnings
from unittest import mock

from support import has, needs
import antifreeze
from antifreeze import _loader

HAS_TORCH = has("torch")
if HAS_TORCH:
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Samples(Dataset):
        def __init__(self, objects=None):
            self._objects = objects

        def __len__(self):
            return 400

        def __getitem__(self, index):
            if self._objects:
                sum(map(len, self._objects[index * 4000 : (index + 1) * 4000]))
            return torch.zeros(1000)

    class Scarce(Dataset):
        """Finds no memory for some of its items as often as it is told; in workers always."""

        def __init__(self, times):
            self._times = times

        def __len__(self):
            return 24

        def __getitem__(self, index):
            left = self._times.get(index, 0)
            if left:
                if torch.utils.data.get_worker_info() is None:
                    self._times[index] = left - 1
                raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: 8 bytes")
            return torch.tensor(index)

    class Unordered(Dataset):
        """The first batch takes longest, and for the third there is no memory."""

        def __len__(self):
            return 24

        def __getitem__(self, index):
            if torch.utils.data.get_worker_info() is not None:
                if index == 0:
                    time.sleep(1)
                if index == 8:
                    raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
            return torch.tensor(index)

    class Deep(Dataset):
        """Finds no memory in workers, many calls away."""

        def __init__(self, error):
            self._error = error

        def __len__(self):
            return 8

        def __getitem__(self, index):
            if index == 4 and torch.utils.data.get_worker_info() is not None:
                self.transformed_by_something_with_a_long_name(30)
            return torch.tensor(index)

        def transformed_by_something_with_a_long_name(self, calls):
            if not calls:
                raise self._error
            self._and_by_another_one(calls - 1)

        def _and_by_another_one(self, calls):
            self.transformed_by_something_with_a_long_name(calls)

    class TwoWords(MemoryError):
        """As numpy's, which cannot be made again from a text."""

        def __init__(self, shape, dtype):
            self.args = shape, dtype

    TwoWords.__name__ = "_ArrayMemoryError"

    class Killed(Dataset):
        """Its third batch ends the worker, as the kernel does when memory runs out."""

        def __len__(self):
            return 24

        def __getitem__(self, index):
            if index == 8:
                os.kill(os.getpid(), signal.SIGKILL)
            return torch.tensor(index)

    class Several(Scarce):
        def __getitems__(self, indices):
            return [self[index] for index in indices]

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield torch.tensor(1)
            raise MemoryError


def used(loader, work=lambda: None):
    """The warnings of going through it once."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in loader:
            work()
    return [str(warning.message) for warning in said]


class AnyLoaderTest(unittest.TestCase):
    def test_it_is_used_like_the_loader(self):
        class Own:
            batch_size = 7

            def __iter__(self):
                return iter("abc")

        loader = antifreeze.wrap(Own())
        self.assertEqual((list(loader), loader.batch_size), (["a", "b", "c"], 7))
        with self.assertRaises(AttributeError):
            loader.nothing

    def test_it_is_copied_and_sent_as_any_other_thing(self):
        loader = antifreeze.wrap([1, 2])
        for other in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
            self.assertEqual((list(other), len(other)), ([1, 2], 2))

    def test_whether_there_is_one(self):
        self.assertTrue(antifreeze.wrap(number for number in range(2)))
        self.assertTrue(antifreeze.wrap([1]))
        self.assertFalse(antifreeze.wrap([]))

    def test_waiting_is_measured_and_told_once(self):
        now = 0.0

        def takes(seconds):
            nonlocal now
            now += seconds

        class Loader:
            def __init__(self, seconds):
                self._seconds = seconds

            def __iter__(self):
                for _ in range(60):
                    takes(self._seconds)
                    yield 1

        slow, quick = antifreeze.wrap(Loader(3.0)), antifreeze.wrap(Loader(0.1))
        with mock.patch.object(_loader.time, "perf_counter", lambda: now):
            said = used(slow, lambda: takes(1.0))
            self.assertEqual(used(quick, lambda: takes(1.0)), [])
        self.assertEqual(len(said), 1, said)
        self.assertIn("waited for data 75% of the time", said[0])
        self.assertAlmostEqual(slow.stats.input_bound, 0.75, delta=0.01)


@needs("torch")
# How fast they are is nothing to judge here.
@mock.patch.object(_loader, "_MAX_WAIT_SHARE", 2.0)
class TorchTest(unittest.TestCase):
    def test_a_good_loader_is_left_alone(self):
        loader = antifreeze.wrap(DataLoader(Samples(), batch_size=8, num_workers=2))
        self.assertEqual(used(loader), [])
        stats = loader.stats
        self.assertEqual((stats.batches, stats.batch_bytes, stats.bytes_in_flight), (50, 32000, 4 * 32000))
        self.assertGreater(stats.worker_bytes, 1_000_000)

    def test_batches_of_any_kind_are_measured(self):
        sparse = antifreeze.wrap([torch.eye(3).to_sparse()])
        self.assertEqual(used(sparse), [])
        self.assertGreater(sparse.stats.batch_bytes, 0)
        views = antifreeze.wrap(torch.zeros(100, 10).split(10))
        self.assertEqual(used(views), [])
        self.assertEqual(views.stats.batch_bytes, 400)

    def test_fork_after_threads(self):
        end = threading.Event()
        thread = threading.Thread(target=end.wait)
        thread.start()
        try:
            loader = DataLoader(Samples(), batch_size=8, num_workers=1, multiprocessing_context="fork")
            said = used(antifreeze.wrap(loader))
        finally:
            end.set()
            thread.join()
        self.assertEqual(len(said), 1, said)
        self.assertIn("forked while 1 other thread runs", said[0])
        self.assertEqual(used(antifreeze.wrap(loader)), [])

    def test_little_shared_memory(self):
        with mock.patch.object(_loader, "_free_shm_bytes", lambda: 100_000):
            loader = antifreeze.wrap(DataLoader(Samples(), batch_size=8, num_workers=2))
            said = used(loader)
        self.assertEqual(len(said), 1, said)
        self.assertIn("4 batches of 0 MB may be in /dev/shm", said[0])

    def test_workers_that_copy_what_they_read(self):
        """Each object that is read is written to, since it is counted who holds it."""
        samples = Samples(objects=[str(number) * 8 for number in range(400_000)])
        loader = antifreeze.wrap(DataLoader(samples, batch_size=1, num_workers=1, multiprocessing_context="fork"))
        with mock.patch.multiple(_loader, _MAX_WORKER_GROWTH_BYTES=5 << 20, _CHECK_INTERVAL_BATCHES=1, _MAX_WORKER_GROWTH_RATIO=1.02):
            said = used(Early(loader, 90))
        self.assertEqual(len(said), 1, said)
        self.assertIn("copies them in each worker", said[0])


@needs("torch")
@mock.patch.multiple(_loader, _MAX_WAIT_SHARE=2.0, _RETRY_DELAYS_SECONDS=(0.0,) * 4)
class NoMemoryTest(unittest.TestCase):
    def test_a_batch_that_found_no_memory_comes_in_its_turn(self):
        shuffled = {"shuffle": True, "generator": "seeded"}
        for kind in (Scarce, Several):
            for options in (
                {"batch_size": 4}, {"batch_size": 5, **shuffled}, {"batch_size": None}, {"batch_size": 4, "num_workers": 2},
                {"batch_size": 4, "num_workers": 1, "persistent_workers": True, **shuffled},
            ):
                with self.subTest(kind.__name__, **options):
                    plain, scarce = (self.loader(kind, times, options) for times in ({}, {9: 1, 15: 1, 16: 1}))
                    wrapped = antifreeze.wrap(scarce)
                    for _ in range(2):
                        self.assertEqual([part.tolist() for part in wrapped], [part.tolist() for part in plain])
                    self.assertGreaterEqual(wrapped.stats.fetched_again, 1)
                    self.assertNotIsInstance(scarce.batch_sampler or scarce.sampler, _loader._RecordingSampler)

    def loader(self, kind, times, options):
        if "generator" in options:
            options = {**options, "generator": torch.Generator().manual_seed(3)}
        return DataLoader(kind(times), **options)

    def test_an_error_at_the_end_of_a_long_traceback(self):
        said = RuntimeError("DefaultCPUAllocator: can't allocate memory")
        for error in (said, MemoryError(), TwoWords((2, 3), "f8")):
            with self.subTest(repr(error)):
                loader = antifreeze.wrap(DataLoader(Deep(error), batch_size=4, num_workers=1))
                self.assertEqual([batch.tolist() for batch in loader], [[0, 1, 2, 3], [4, 5, 6, 7]])

    @unittest.skipUnless(HAS_TORCH and hasattr(DataLoader([]), "in_order"), "they come in order")
    def test_of_batches_in_any_order_nothing_is_lost_and_none_comes_twice(self):
        loader, came = antifreeze.wrap(DataLoader(Unordered(), batch_size=4, num_workers=2, in_order=False)), []
        with self.assertRaisesRegex(RuntimeError, "can't allocate memory"):
            for batch in loader:
                came += batch.tolist()
        self.assertEqual((len(set(came)), loader.stats.fetched_again), (len(came), 0))
        self.assertNotIn(8, came)

    def test_a_worker_that_was_killed_is_no_batch_to_fetch_again(self):
        """The loader has not gone on to the next: it might come twice."""
        loader, came = antifreeze.wrap(DataLoader(Killed(), batch_size=4, num_workers=2)), []
        with self.assertRaisesRegex(RuntimeError, "DataLoader worker"):
            for batch in loader:
                came += batch.tolist()
        self.assertEqual((came, loader.stats.fetched_again), (sorted(set(came)), 0))

    def test_no_memory_to_take_over_what_a_worker_made_is_raised_as_ever(self):
        """It is still to come: fetched here, it would come twice."""
        several = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
        take, refusals = several._try_get_data, [RuntimeError("can't allocate memory")]

        def scarce(batches, *words, **named):
            if refusals:
                raise refusals.pop()
            return take(batches, *words, **named)

        loader, came = antifreeze.wrap(DataLoader(Scarce({}), batch_size=4, num_workers=1)), []
        with mock.patch.object(several, "_try_get_data", scarce), self.assertRaisesRegex(RuntimeError, "can't allocate"):
            for batch in loader:
                came += batch.tolist()
        self.assertEqual(came, [])

    def test_one_that_never_fits_is_told(self):
        loader = antifreeze.wrap(DataLoader(Scarce({9: 100}), batch_size=4))
        with self.assertRaisesRegex(RuntimeError, "can't allocate memory.*ran out of memory for this batch in 5 attempts"):
            list(loader)

    def test_what_cannot_be_fetched_again_fails_as_ever(self):
        with self.assertRaises(MemoryError) as raised:
            list(antifreeze.wrap(DataLoader(Stream(), batch_size=None)))
        self.assertEqual(str(raised.exception), "")

        def broken(items):
            raise ValueError("wrong")

        with self.assertRaisesRegex(ValueError, "wrong"):
            list(antifreeze.wrap(DataLoader(Scarce({}), batch_size=4, collate_fn=broken)))


class Early:
    """The first so many of a loader."""

    def __init__(self, loader, number):
        self._loader, self._number = loader, number

    def __iter__(self):
        for _, batch in zip(range(self._number), self._loader):
            yield batch


if __name__ == "__main__":
    unittest.main()
