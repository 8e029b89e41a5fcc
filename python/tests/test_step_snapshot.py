"""Real PyTorch: another attempt finds everything as the first did, whatever the first had done."""

import functools
import threading
import unittest
import warnings

from support import has, needs

HAS_TORCH = has("torch")
if HAS_TORCH:
    import torch
    from test_split import Narrow
    from torch import nn

    import antifreeze
    from antifreeze import _split_cache, _step_snapshot


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        _split_cache._caches.clear()


@needs("torch")
class GradientsTest(Case):
    def assert_grad(self, tensor, expected):
        torch.testing.assert_close(tensor.grad, expected)

    def test_a_head_that_is_first_used_in_a_later_step(self):
        body, heads, narrow = nn.Linear(4, 4), [nn.Linear(4, 1), nn.Linear(4, 1)], Narrow(100, backward=True)

        def forward(x):
            return heads[0](body(narrow.through(x))).sum(), 2 * len(x)

        x = torch.randn(8, 4)
        antifreeze.step(forward, x)
        heads.reverse()
        narrow.most = 4
        expected = torch.autograd.grad(heads[0](body(x)).sum() / 16, heads[0].weight)[0]
        antifreeze.step(forward, x)
        self.assert_grad(heads[0].weight, expected)

    def test_a_head_that_was_replaced(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

            def forward(self, x):
                return self.head(self.body(x))

        model, narrow, x = Model(), Narrow(100, backward=True), torch.randn(8, 4)

        def forward(x):
            return model(narrow.through(x)).sum(), len(x)

        antifreeze.step(forward, x)
        model.head = nn.Linear(4, 1)
        narrow.most = 4
        expected = torch.autograd.grad(model(x).mean(), model.head.weight)[0]
        antifreeze.step(forward, x)
        self.assert_grad(model.head.weight, expected)

    def test_a_module_that_is_made_for_each_call(self):
        first, rest, narrow = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 1), nn.Identity()), Narrow(100, backward=True)

        def forward(x):
            return rest[:-1](first(narrow.through(x))).sum(), len(x)

        x = torch.randn(8, 4)
        antifreeze.step(forward, x)
        rest.zero_grad()
        narrow.most = 4
        expected = torch.autograd.grad(rest(first(x)).mean(), rest[0].weight)[0]
        antifreeze.step(forward, x)
        self.assert_grad(rest[0].weight, expected)

    def test_an_input_with_gradients(self):
        model, narrow = nn.Linear(4, 1), Narrow(100, backward=True)

        def forward(x):
            return narrow.through(model(x)).sum(), 2 * len(x)

        for most in (100, 4):
            x, narrow.most = torch.randn(8, 4, requires_grad=True), most
            antifreeze.step(forward, x)
            self.assert_grad(x, model.weight.detach().expand(8, 4) / 16)

    def test_parameters_that_the_graph_does_not_show(self):
        from torch.utils.checkpoint import checkpoint

        model, narrow, x = nn.Linear(4, 1), Narrow(100, backward=True), torch.randn(8, 4)

        def forward(x):
            return checkpoint(model, narrow.through(x), use_reentrant=True).sum(), 2 * len(x)

        for most in (100, 4):
            narrow.most = most
            model.zero_grad()
            antifreeze.step(forward, x)
            self.assert_grad(model.weight, x.mean(dim=0, keepdim=True) / 2)

    def test_an_interrupted_step_leaves_the_gradients_that_were_there(self):
        model, x = nn.Linear(4, 1), torch.ones(2, 4)
        model(x).sum().backward()

        def interrupt(*_):
            raise KeyboardInterrupt

        for function, backward in ((lambda x: interrupt(model(x)), None), (lambda x: (model(x).sum(), 2), interrupt)):
            with self.assertRaises(KeyboardInterrupt):
                antifreeze.step(function, x, backward=backward)
            self.assert_grad(model.weight, torch.full((1, 4), 2.0))

    def test_sparse_gradients_on_dense_ones_and_the_other_way_round(self):
        rows = torch.tensor([1, 2])
        for is_sparse in (False, True):
            model = nn.Embedding(5, 2, sparse=is_sparse)
            model(rows).sum().backward()
            model.sparse = not is_sparse
            antifreeze.step(lambda rows: (model(rows).sum(), 1), rows)
            expected = torch.zeros(5, 2)
            expected[rows] = 2
            torch.testing.assert_close(model.weight.grad.to_dense(), expected)

    def test_gradients_are_added_to_in_their_place(self):
        model, x = nn.Linear(4, 1), torch.ones(2, 4)
        model(x).sum().backward()
        held = model.weight.grad
        antifreeze.step(lambda x: (model(x).sum(), 2), x)
        self.assertIs(model.weight.grad, held)

    def test_threads_do_not_disturb_each_other(self):
        x, wrong = torch.randn(64, 4), []
        expected = x.mean(dim=0, keepdim=True)

        def train():
            model = nn.Linear(4, 1)
            for _ in range(100):
                model.zero_grad()
                antifreeze.step(lambda x: (model(x).sum(), len(x)), x)
                if model.weight.grad is None or not torch.allclose(model.weight.grad, expected, atol=1e-5):
                    wrong.append(model.weight.grad)

        threads = [threading.Thread(target=train) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


@needs("torch")
class BuffersTest(Case):
    def model(self, change, shape=(1,)):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(1))
                self.register_buffer("seen", torch.zeros(shape))

            def forward(self, x):
                change(self, len(x))
                return x * self.weight

        return Model()

    def forward_of(self, model, narrow):
        return lambda x: (model(narrow.through(x)).sum(), len(x))

    def changes(self):
        def in_place(module, number):
            module.seen += number

        def unseen(module, number):
            module.seen.data.add_(number)

        def anew(module, number):
            module.seen = module.seen + number

        return in_place, unseen, anew

    def test_one_that_is_taken_away_is_put_back_for_another_attempt(self):
        found = []

        def take(module, number):
            found.append("seen" in dict(module.named_buffers()))
            module._buffers.pop("seen", None)

        for shape in ((1,), (_step_snapshot.LARGE_BUFFER_NUMEL + 1,)):
            antifreeze.step(self.forward_of(self.model(take, shape), Narrow(4, backward=True)), torch.ones(8))
        self.assertEqual(found, [True, True, False] * 2)

    def test_however_they_are_changed(self):
        for change in self.changes():
            for shape in ((1,), (_step_snapshot.LARGE_BUFFER_NUMEL + 1,)):
                with self.subTest(change=change.__name__, shape=shape):
                    model, narrow = self.model(change, shape), Narrow(4, backward=True)
                    forward = self.forward_of(model, narrow)
                    for most in (4, 2):
                        narrow.most = most
                        antifreeze.step(forward, torch.ones(8))
                    self.assertEqual(model.seen[0].item(), 16)

    def test_small_ones_that_change_for_the_first_time_in_a_later_step(self):
        for change in self.changes():
            is_on = []
            model = self.model(lambda module, number: is_on and change(module, number))
            narrow = Narrow(100, backward=True)
            forward = self.forward_of(model, narrow)
            antifreeze.step(forward, torch.ones(8))
            is_on.append(1)
            narrow.most = 4
            antifreeze.step(forward, torch.ones(8))
            self.assertEqual(model.seen.item(), 8)

    def test_large_ones_that_change_for_the_first_time_in_a_later_step_are_refused(self):
        is_on = []
        model = self.model(lambda module, number: is_on and module.seen.add_(number), (_step_snapshot.LARGE_BUFFER_NUMEL + 1,))
        narrow = Narrow(100, backward=True)
        forward = self.forward_of(model, narrow)
        antifreeze.step(forward, torch.ones(8))
        is_on.append(1)
        narrow.most = 4
        with self.assertRaisesRegex(RuntimeError, "the buffer seen of Model was changed"):
            antifreeze.step(forward, torch.ones(8))
        model.seen.zero_()
        antifreeze.step(forward, torch.ones(8))
        self.assertEqual(model.seen[0].item(), 8)

    def test_running_means_are_those_of_the_parts_alone(self):
        model, x = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), torch.randn(8, 4)
        with torch.no_grad():
            before = {name: value.clone() for name, value in model.state_dict().items()}
            model(x[:4]), model(x[4:])
            expected = model[1].running_mean.clone()
            model.load_state_dict(before)
        antifreeze.step(self.forward_of(model, Narrow(4, backward=True)), x, batch_norm="allow")
        torch.testing.assert_close(model[1].running_mean, expected)

    def test_modules_without_a_size_yet(self):
        model, x = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.LazyLinear(1)), torch.randn(8, 4)
        antifreeze.step(self.forward_of(model, Narrow(4, backward=True)), x, batch_norm="allow")
        self.assertEqual(model[1].num_batches_tracked.item(), 2)


@unittest.skipUnless(HAS_TORCH and hasattr(torch, "compile"), "there is no compiler")
class CompiledTest(Case):
    def count(self, make):
        """How often it is compiled, in steps that are whole and in steps that are taken in parts."""
        compiled = []

        def backend(graph, inputs):
            compiled.append(1)
            return graph.forward

        torch._dynamo.reset()
        base = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        forward = make(base, functools.partial(torch.compile, backend=backend, fullgraph=True, dynamic=True))
        x = torch.randn(8, 4)
        expected = torch.autograd.grad(base(x).mean(), base[0].weight)[0]
        for _ in range(4):
            base.zero_grad()
            antifreeze.step(forward, x)
            torch.testing.assert_close(base[0].weight.grad, expected)
        return len(compiled)

    def test_modules_and_functions_are_compiled_once(self):
        def module(base, compile):
            model = compile(base)
            return lambda x: (model(x).sum(), len(x))

        def method(base, compile):
            base.compile(**compile.keywords)
            return lambda x: (base(x).sum(), len(x))

        def function(base, compile):
            inner = compile(lambda x: base(x).sum())
            return lambda x: (inner(x), len(x))

        def all_of_it(base, compile):
            return compile(lambda x: (base(x).sum(), x.shape[0]))

        for make in (module, method, function, all_of_it):
            with self.subTest(make.__name__), warnings.catch_warnings(record=True) as warned:
                self.assertEqual(self.count(make), 1)
                self.assertEqual([str(warning.message) for warning in warned if "hooks" in str(warning.message)], [])

    def test_batch_norm_in_compiled_code_is_seen(self):
        def module(base):
            return torch.compile(base, backend="eager")

        def method(base):
            base.compile(backend="eager")
            return base

        def function(base):
            return torch.compile(lambda x: base(x), backend="eager")

        for make in (module, method, function):
            with self.subTest(make.__name__):
                torch._dynamo.reset()
                model, narrow = make(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))), Narrow(4)
                with self.assertRaisesRegex(RuntimeError, "BatchNorm would use"):
                    antifreeze.step(lambda x: (model(narrow.through(x)).sum(), len(x)), torch.randn(8, 4))


if __name__ == "__main__":
    unittest.main()
