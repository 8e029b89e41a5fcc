"""The batch that fits is found by trying, and nothing else is lost by it."""

import copy
import os
import resource
import sys
import unittest
from unittest import mock

from support import PYTHON, Scene, has, needs
import antifreeze
from antifreeze import _sizes

HAS_TORCH = has("torch")
HAS_TENSORFLOW = has("tensorflow")
MB = 1 << 20


def takes_a_megabyte_each(size):
    held = bytearray(size * MB)
    held[:: 4096] = b"x" * len(held[:: 4096])


def is_killed_above_20(size):
    if size > 20:
        os.abort()


def is_wrong(size):
    raise KeyError("label")


class FindTest(unittest.TestCase):
    def setUp(self):
        # Where it is imported, by another test, sizes are tried in processes, which know nothing of what is pretended.
        tensorflow = sys.modules.pop("tensorflow", None)
        if tensorflow is not None:
            self.addCleanup(sys.modules.__setitem__, "tensorflow", tensorflow)

    def test_the_largest_that_fits_whatever_it_is(self):
        for right in (1, 2, 3, 64, 65, 1000, 4097):
            tried = []

            def step(size):
                tried.append(size)
                if size > right:
                    raise MemoryError

            self.assertEqual(antifreeze.find_batch_size(step), right)
            self.assertLessEqual(len(tried), 30)
            self.assertLessEqual(max(tried), 2 * right)

    def test_bounds(self):
        def refuses(size):
            raise MemoryError

        self.assertEqual(antifreeze.find_batch_size(refuses), 0)
        self.assertEqual(antifreeze.find_batch_size(lambda size: None, most=100), 100)
        self.assertEqual(antifreeze.find_batch_size(lambda size: None, start=7, most=7), 7)
        with self.assertRaises(ValueError):
            antifreeze.find_batch_size(refuses, start=0)

    def test_another_error_is_the_scripts_own(self):
        with self.assertRaises(KeyError):
            antifreeze.find_batch_size(is_wrong)
        with self.assertRaisesRegex(RuntimeError, "KeyError"):
            antifreeze.find_batch_size(is_wrong, in_process=False)

    def test_real_memory_is_refused_and_the_limit_is_lifted(self):
        """As if 300 MB were available."""
        before = resource.getrlimit(resource.RLIMIT_DATA)
        room = mock.patch.object(_sizes, "_available_bytes", lambda: 300 * MB)
        with room, mock.patch.dict(os.environ):
            os.environ.pop("ANTIFREEZE_PAGE", None)
            found = antifreeze.find_batch_size(takes_a_megabyte_each)
        self.assertTrue(200 <= found <= 256, found)
        self.assertEqual(resource.getrlimit(resource.RLIMIT_DATA), before)

    def test_a_process_of_its_own_may_die_of_it(self):
        self.assertEqual(antifreeze.find_batch_size(is_killed_above_20, in_process=False), 20)

    def test_a_function_that_cannot_be_sent_is_told(self):
        with self.assertRaisesRegex(ValueError, "top level of a module"):
            antifreeze.find_batch_size(lambda size: None, in_process=False)

    @needs("torch")
    def test_torch_is_left_as_it_was(self):
        import torch

        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        model(torch.randn(8, 4)).sum().backward()
        before = [parameter.grad.clone() for parameter in model.parameters()]
        random, seen = torch.get_rng_state(), model[1].num_batches_tracked.item()

        def step(size):
            model(torch.randn(size + 1, 4)).sum().backward()
            if size > 10:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

        self.assertEqual(antifreeze.find_batch_size(step), 10)
        torch.testing.assert_close([parameter.grad for parameter in model.parameters()], before)
        self.assertTrue(torch.equal(torch.get_rng_state(), random))
        self.assertEqual(model[1].num_batches_tracked.item(), seen)

    @needs("torch")
    def test_what_an_optimizer_changed_is_put_back(self):
        import torch

        for make in (
            lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
            lambda parameters: torch.optim.Adam(parameters, lr=0.1),
            lambda parameters: torch.optim.AdamW(parameters, lr=0.1, amsgrad=True, foreach=True),
            lambda parameters: torch.optim.LBFGS(parameters, lr=0.1),
        ):
            for has_stepped in (False, True):
                model = torch.nn.Linear(4, 1)
                optimizer = make(model.parameters())

                def one_step(size):
                    def closure():
                        optimizer.zero_grad()
                        loss = model(torch.ones(size, 4)).pow(2).sum()
                        loss.backward()
                        return loss

                    optimizer.step(closure)
                    if size > 10:
                        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
                    for group in optimizer.param_groups:
                        group["lr"] *= 0.5

                with self.subTest(type(optimizer).__name__, has_stepped=has_stepped):
                    if has_stepped:
                        one_step(2)
                    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                    self.assertEqual(antifreeze.find_batch_size(one_step), 10)
                    torch.testing.assert_close((model.state_dict(), optimizer.state_dict()), before, equal_nan=True)

    @needs("tensorflow")
    def test_tensorflow_is_tried_elsewhere(self):
        ended = Scene(self).run(TENSORFLOW, PYTHONPATH=PYTHON, ANTIFREEZE_PAGE="")
        self.assertEqual(ended.returncode, 0, ended)
        self.assertTrue(2 <= int(ended.stdout) <= 6, ended)


TENSORFLOW = """
import tensorflow as tf
import antifreeze
from antifreeze import _sizes

_sizes._available_bytes = lambda: 1 << 30

def step(size):
    # 128 megabytes an item.
    float(tf.reduce_sum(tf.ones((size, 32 << 20))))

if __name__ == "__main__":
    print(antifreeze.find_batch_size(step, most=64))
"""


if __name__ == "__main__":
    unittest.main()
