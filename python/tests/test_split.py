"""Real PyTorch: steps taken in parts have the gradients of the whole."""

import copy
import functools
import os
import sys
import unittest
import warnings
from unittest import mock

from support import PYTHON, Scene, has, needs

HAS_TORCH = has("torch")
if HAS_TORCH:
    import torch
    from torch import nn

    import antifreeze
    from antifreeze import _split, _split_cache


def no_memory():
    return RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory")


class Narrow:
    """A place through which only so many items go at once; more have no memory."""

    def __init__(self, most, backward=False):
        self.most, self.backward, self.refused = most, backward, 0
        narrow = self

        class Through(torch.autograd.Function):
            @staticmethod
            def forward(context, x):
                narrow.pass_(len(x), not backward)
                return x.clone()

            @staticmethod
            def backward(context, gradient):
                narrow.pass_(len(gradient), backward)
                return gradient.clone()

        # Only what has gradients goes back.
        self.through = lambda x: Through.apply(x if x.requires_grad else x.detach().requires_grad_())

    def pass_(self, number, counts):
        if counts and number > self.most:
            self.refused += 1
            raise no_memory()


def grads(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


@needs("torch")
class SplitTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        _split_cache._caches.clear()

    def assert_same(self, model, whole, forward_of, batch, most, backward=False, **options):
        """Taken in parts, its gradients are those of the whole, and so is the loss."""
        loss = whole(model, batch)
        loss.backward()
        expected = grads(model)
        model.zero_grad()
        _split_cache._caches.clear()
        narrow = Narrow(most, backward)
        split = antifreeze.step(forward_of(model, narrow.through), batch, **options)
        self.assertGreater(narrow.refused, 0)
        torch.testing.assert_close(split, loss.detach(), rtol=1e-5, atol=1e-6)
        for found, right in zip(grads(model), expected):
            torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-6)

    def test_an_mlp_with_a_ragged_last_part(self):
        model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
        batch = torch.randn(37, 12), torch.randn(37, 3)

        def whole(model, batch):
            return nn.functional.mse_loss(model(batch[0]), batch[1])

        def forward_of(model, through):
            def forward(batch):
                x, y = batch
                return (model(through(x)) - y).pow(2).mean(dim=1).sum(), len(x)

            return forward

        for backward in (False, True):
            for most in (1, 5, 20):
                with self.subTest(most=most, backward=backward):
                    self.assert_same(copy.deepcopy(model), whole, forward_of, batch, most, backward)

    def test_a_cnn_with_a_mean(self):
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GELU(), nn.Flatten(), nn.Linear(4 * 36, 5))
        batch = {"image": torch.randn(10, 1, 8, 8), "label": torch.randint(5, (10,)), "name": "digits"}

        def whole(model, batch):
            return nn.functional.cross_entropy(model(batch["image"]), batch["label"])

        def forward_of(model, through):
            return lambda batch: whole(lambda x: model(through(x)), batch)

        self.assert_same(model, whole, forward_of, batch, 4, items=lambda batch: len(batch["label"]))

    def test_a_transformer_that_leaves_tokens_out(self):
        class Language(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(50, 16)
                layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
                self.encode = nn.TransformerEncoder(layer, 2)
                self.head = nn.Linear(16, 50)

            def forward(self, tokens, through=lambda x: x):
                return self.head(self.encode(through(self.embed(tokens))))

        tokens, labels = torch.randint(50, (9, 7)), torch.randint(50, (9, 7))
        labels[:4, 3:] = -100
        labels[8] = -100

        def whole(model, batch):
            return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())

        def forward_of(model, through):
            def forward(batch):
                tokens, labels = batch
                scores = model(tokens, through).flatten(0, 1)
                return nn.functional.cross_entropy(scores, labels.flatten(), reduction="sum"), (labels != -100).sum()

            return forward

        for backward in (False, True):
            with self.subTest(backward=backward):
                self.assert_same(Language(), whole, forward_of, (tokens, labels), 2, backward)

    def test_gradients_that_were_there_are_added_to(self):
        model, x = nn.Linear(4, 1), torch.randn(6, 4)
        model(x).sum().backward()
        before = grads(model)
        narrow = Narrow(2)
        antifreeze.step(lambda x: (model(narrow.through(x)).sum(), len(x)), x)
        for found, old in zip(grads(model), before):
            torch.testing.assert_close(found, old + old / 6)

    def test_what_fitted_is_remembered_for_this_function_alone(self):
        model, x, narrow = nn.Linear(4, 1), torch.randn(16, 4), Narrow(4)

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        antifreeze.step(forward, x)
        self.assertEqual(narrow.refused, 2)
        antifreeze.step(forward, x)
        self.assertEqual(narrow.refused, 2)
        calls = []
        antifreeze.step(lambda x: (calls.append(len(x)), (model(x).sum(), len(x)))[1], x)
        self.assertEqual(calls, [16])

    def test_the_same_function_may_train_another_model(self):
        def train(model):
            def forward(x):
                return model(x).sum(), 2 * len(x)

            for _ in range(3):
                model.zero_grad()
                antifreeze.step(forward, torch.ones(4, 3))
            return model.bias.grad.item()

        self.assertEqual([train(nn.Linear(3, 1)), train(nn.Linear(3, 1))], [0.5, 0.5])

    def test_modules_may_share_their_weights(self):
        one, two = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        two.weight = one.weight
        x = torch.randn(6, 3)
        (two(one(x)).sum() / 12).backward()
        expected = one.weight.grad.clone()
        one.weight.grad = None
        narrow = Narrow(2)
        for _ in range(2):
            one.weight.grad = None
            antifreeze.step(lambda x: (two(one(narrow.through(x))).sum(), 2 * len(x)), x)
            torch.testing.assert_close(one.weight.grad, expected)

    def test_what_belongs_to_no_module_counts_too(self):
        weight, x = torch.ones(3, requires_grad=True), torch.randn(8, 3)
        ((x * weight).sum() / 16).backward()
        expected, weight.grad = weight.grad, None
        narrow = Narrow(2, backward=True)

        def forward(x):
            # The narrow place comes last, so that the weight has its gradient when it is refused.
            return (narrow.through(x) * weight).sum(), 2 * len(x)

        for _ in range(2):
            weight.grad = None
            antifreeze.step(forward, x)
            torch.testing.assert_close(weight.grad, expected)
        self.assertGreater(narrow.refused, 0)
        weight.grad = None
        antifreeze.step(lambda x: ((x * weight).sum(), 2 * len(x)), x)
        torch.testing.assert_close(weight.grad, expected)

    def test_an_empty_batch_is_no_step(self):
        model = nn.Linear(4, 1)
        loss = antifreeze.step(lambda x: (model(x).sum(), len(x)), torch.ones(0, 4))
        self.assertEqual((loss.item(), model.weight.grad), (0.0, None))
        loss = antifreeze.step(lambda x: model(x[:0]).mean(), torch.ones(4, 4), items=lambda x: 0)
        self.assertEqual((loss.item(), loss.requires_grad), (0.0, False))

    def test_random_numbers_and_buffers_are_as_if_it_had_not_been_tried(self):
        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(1))
                self.register_buffer("seen", torch.zeros(1))

            def forward(self, x):
                self.seen += len(x)
                return x * self.weight + torch.rand(1)

        model, narrow, drawn = Counting(), Narrow(4, backward=True), []

        def forward(x):
            y = model(narrow.through(x))
            drawn.append(torch.rand(1).item())
            return y.sum(), len(x)

        for _ in range(3):
            antifreeze.step(forward, torch.ones(8))
        self.assertEqual(model.seen.item(), 24)
        self.assertEqual(drawn[0], drawn[1])

    def test_batch_norm_is_refused_warned_of_or_allowed(self):
        model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.randn(8, 4)
        narrow = Narrow(4)

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        with self.assertRaisesRegex(RuntimeError, "can't allocate memory .*BatchNorm would use"):
            antifreeze.step(forward, x)
        self.assertTrue(all(parameter.grad is None for parameter in model.parameters()))
        self.assertEqual(model[1].num_batches_tracked.item(), 0)
        with self.assertWarnsRegex(UserWarning, "BatchNorm uses"):
            antifreeze.step(forward, x, batch_norm="warn")
        self.assertEqual(model[1].num_batches_tracked.item(), 2)
        model.eval()
        antifreeze.step(lambda x: forward(x), x)

    def test_batch_norm_in_a_module_that_is_made_for_one_call_is_seen(self):
        model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), torch.randn(8, 4)
        narrow = Narrow(3)

        def forward(x):
            return model[-1](narrow.through(model[:-1](x))).sum(), len(x)

        with self.assertRaisesRegex(RuntimeError, "BatchNorm would use"):
            antifreeze.step(forward, x)

    def test_only_batch_norm_that_is_called_counts(self):
        class Two(nn.Module):
            def __init__(self):
                super().__init__()
                self.plain, self.other = nn.Linear(4, 1), nn.BatchNorm1d(4)

            def forward(self, x):
                return self.plain(x)

        model, narrow = Two(), Narrow(4)
        antifreeze.step(lambda x: (model(narrow.through(x)).sum(), len(x)), torch.randn(8, 4))
        self.assertEqual(narrow.refused, 1)

    def test_the_whole_is_tried_before_batch_norm_is_refused(self):
        model, narrow = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), Narrow(4)

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        for is_known in (False, True):
            model.eval()
            narrow.most = 4
            antifreeze.step(forward, torch.randn(8, 4))
            model.train()
            narrow.most = 100
            if is_known:
                # As if the function had never called it.
                [(_, cache)] = next(iter(_split_cache._caches.values())).values()
                cache.batch_norms = []
            antifreeze.step(forward, torch.randn(8, 4))
            self.assertEqual(model[1].num_batches_tracked.item(), 1 + is_known)

    def test_batch_norm_in_a_scripted_module_is_seen(self):
        model, narrow = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), Narrow(4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = torch.jit.script(model)
        with self.assertRaisesRegex(RuntimeError, "BatchNorm would use"):
            antifreeze.step(lambda x: (model(narrow.through(x)).sum(), len(x)), torch.randn(8, 4))

    def test_two_models_of_one_function_do_not_share_what_fits(self):
        sizes = []

        def forward_of(model, narrow):
            def forward(x):
                sizes.append(len(x))
                return model(narrow.through(x)).sum(), len(x)

            return forward

        one, other = forward_of(nn.Linear(4, 1), Narrow(4)), forward_of(nn.Linear(4, 1), Narrow(100))
        for _ in range(2):
            antifreeze.step(one, torch.randn(8, 4))
            antifreeze.step(other, torch.randn(8, 4))
        self.assertEqual(sizes, [8, 4, 4, 8, 4, 4, 8])

    def test_a_partial_function_is_remembered(self):
        model, narrow = nn.Linear(4, 1), Narrow(4)

        def forward(model, x):
            return model(narrow.through(x)).sum(), len(x)

        for _ in range(3):
            antifreeze.step(functools.partial(forward, model), torch.randn(8, 4))
        self.assertEqual(narrow.refused, 1)

    def test_hooks_that_take_gradients_in_backward_are_refused(self):
        model, narrow, acted = nn.Linear(4, 1), Narrow(4), []

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        model.weight.register_post_accumulate_grad_hook(acted.append)
        with self.assertRaisesRegex(RuntimeError, "can't allocate memory .*a hook on a parameter runs"):
            antifreeze.step(forward, torch.randn(8, 4))
        narrow.most = 8
        antifreeze.step(forward, torch.randn(8, 4))
        self.assertEqual(len(acted), 1)

    def test_what_is_no_lack_of_memory_is_raised_as_it_is(self):
        model, x = nn.Linear(4, 1), torch.randn(6, 4)
        model(x).sum().backward()
        before = grads(model)

        def forward(x):
            model(x)
            raise ValueError("labels are wrong")

        with self.assertRaisesRegex(ValueError, "labels are wrong"):
            antifreeze.step(forward, x)

        def is_asked_to_end(x):
            model(x)
            raise antifreeze.MemoryPressure("now")

        with self.assertRaises(antifreeze.MemoryPressure):
            antifreeze.step(is_asked_to_end, x)
        torch.testing.assert_close(grads(model), before)

    def test_one_item_that_does_not_fit_is_an_error_of_its_own_kind(self):
        model, narrow = nn.Linear(4, 1), Narrow(0)

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        with self.assertRaisesRegex(RuntimeError, "not even one item"):
            antifreeze.step(forward, torch.randn(6, 4))

    def test_nothing_of_a_failed_attempt_stays(self):
        import weakref

        model, held, narrow = nn.Linear(4, 1), [], Narrow(3)

        def forward(x):
            large = torch.ones(1000)
            held.append(weakref.ref(large))
            return (model(narrow.through(x)) * large[0]).sum(), len(x)

        with mock.patch.object(_split, "free_unused_memory", side_effect=lambda: self.assertIsNone(held[-1]())):
            antifreeze.step(forward, torch.randn(6, 4))

    def test_bad_batches_and_answers_are_told(self):
        model = nn.Linear(4, 1)

        def does_not_fit(batch):
            raise MemoryError("no memory")

        with self.assertRaisesRegex(MemoryError, "has no tensors"):
            antifreeze.step(does_not_fit, {"name": "digits"})
        with self.assertRaisesRegex(MemoryError, "tensors have \\[3, 4\\] items"):
            antifreeze.step(does_not_fit, (torch.ones(3), torch.ones(4)))
        with self.assertRaisesRegex(TypeError, "sum of the losses"):
            antifreeze.step(lambda x: (0.0, len(x)), torch.ones(2, 4))
        with self.assertRaisesRegex(TypeError, "sum of the losses"):
            antifreeze.step(lambda x: model(x).sum(), torch.ones(2, 4))
        with self.assertRaisesRegex(ValueError, "batch_norm"):
            antifreeze.step(lambda x: model(x).sum(), torch.ones(2, 4), batch_norm="maybe")

    def test_a_step_with_a_scaler(self):
        model, x, narrow = nn.Linear(4, 1), torch.randn(8, 4), Narrow(4)
        antifreeze.step(
            lambda x: (model(narrow.through(x)).sum(), len(x)), x, backward=lambda loss: (loss * 1024).backward()
        )
        torch.testing.assert_close(model.bias.grad, torch.tensor([1024.0]))


RANKS = """
import os, sys, torch
import torch.distributed as dist
from torch import nn
import antifreeze

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(3)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1)))
torch.manual_seed(rank)
x, y = torch.randn(8, 6), torch.randn(8, 1)
nn.functional.mse_loss(model(x), y).backward()
expected = [parameter.grad.clone() for parameter in model.parameters()]
sizes = []

def forward(batch):
    x, y = batch
    sizes.append(len(x))
    if rank == 1 and len(x) > most:
        raise MemoryError("no memory")
    return (model(x) - y).pow(2).sum(), len(x)

most = 3
for attempt in range(2):
    model.zero_grad()
    antifreeze.step(forward, (x, y), ddp=True)
    for parameter, right in zip(model.parameters(), expected):
        torch.testing.assert_close(parameter.grad, right)
# Rank 0 has learnt from rank 1 what fits.
assert sizes == ([8, 2, 2, 2, 2] if rank == 0 else [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]), sizes
# If it cannot be done in one, nobody waits for it.
most = 0
try:
    antifreeze.step(forward, (x, y), ddp=True)
except MemoryError as error:
    assert ("not even one item" if rank == 1 else "another rank") in str(error), error
else:
    raise AssertionError("it went on")
try:
    antifreeze.step(lambda batch: forward(batch), (x, y)) if rank == 1 else None
except MemoryError as error:
    assert "must agree" in str(error), error
with open(sys.argv[1] + str(rank), "w") as file:
    file.write("well")
os._exit(0)
"""


@needs("torch")
class RanksTest(unittest.TestCase):
    def test_ranks_reduce_by_hand_and_learn_from_each_other(self):
        scene = Scene(self)
        script = scene.write("train.py", RANKS)
        torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        ended = scene.run_command([*torchrun, script, scene.folder + "/rank"], PYTHONPATH=PYTHON)
        self.assertEqual(ended.returncode, 0, ended)
        self.assertTrue(all(os.path.exists(f"{scene.folder}/rank{rank}") for rank in range(2)), ended)


if __name__ == "__main__":
    unittest.main()
