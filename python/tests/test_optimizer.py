"""Real PyTorch: an optimizer that finds no memory for its step leaves everything as it was, or says that it did not."""

import copy
import unittest

from support import has, needs

HAS_TORCH = has("torch")
if HAS_TORCH:
    import torch
    from torch import nn

    import antifreeze
    from antifreeze import _split_cache

    class Scarce(torch.utils._python_dispatch.TorchDispatchMode):
        """There is no memory for the given numbers of these operations."""

        def __init__(self, operation, *numbers):
            super().__init__()
            self._operation, self._numbers, self.count = operation, numbers, 0

        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            if function.__name__.startswith(self._operation):
                self.count += 1
                if self.count in self._numbers:
                    raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory")
            return function(*arguments, **(named or {}))


@needs("torch")
class OptimizerTest(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        _split_cache._caches.clear()
        self.model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))
        self.batches = [torch.randn(6, 5) for _ in range(3)]

    def forward_of(self, model):
        return lambda batch: (model(batch).pow(2).sum(), len(batch))

    def plain(self, make):
        model = copy.deepcopy(self.model)
        optimizer = make(model.parameters())
        for batch in self.batches:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
        return model

    def assert_same(self, one, other):
        for here, there in zip(one.parameters(), other.parameters()):
            torch.testing.assert_close(here, there)

    def test_its_step_is_taken(self):
        for make in (lambda given: torch.optim.SGD(given, lr=0.1), torch.optim.Adam, torch.optim.RMSprop):
            model = copy.deepcopy(self.model)
            optimizer, forward = make(model.parameters()), self.forward_of(model)
            for batch in self.batches:
                optimizer.zero_grad()
                antifreeze.step(forward, batch, optimizer=optimizer)
            self.assert_same(model, self.plain(make))

    def test_a_refusal_while_it_makes_its_state_is_undone_and_tried_again(self):
        for number in range(1, 9):
            model = copy.deepcopy(self.model)
            optimizer, forward = torch.optim.Adam(model.parameters()), self.forward_of(model)
            for turn, batch in enumerate(self.batches):
                optimizer.zero_grad()
                with Scarce("zeros_like", number if turn == 0 else 0) as scarce:
                    antifreeze.step(forward, batch, optimizer=optimizer)
            self.assert_same(model, self.plain(torch.optim.Adam))

    def test_if_it_does_not_fit_at_all_nothing_is_changed(self):
        model = copy.deepcopy(self.model)
        optimizer, forward = torch.optim.AdamW(model.parameters()), self.forward_of(model)
        with Scarce("zeros_like", *range(3, 99)), self.assertRaisesRegex(RuntimeError, "nothing was changed"):
            antifreeze.step(forward, self.batches[0], optimizer=optimizer)
        self.assert_same(model, self.model)
        self.assertEqual(len(optimizer.state), 0)
        # The gradients are there, so that another optimizer can take them.
        self.assertTrue(all(parameter.grad is not None for parameter in model.parameters()))

    def test_a_step_that_was_begun_is_told(self):
        model = copy.deepcopy(self.model)
        optimizer, forward = torch.optim.Adam(model.parameters()), self.forward_of(model)
        antifreeze.step(forward, self.batches[0], optimizer=optimizer)
        with Scarce("sqrt", 2) as scarce, self.assertRaisesRegex(RuntimeError, "changed part of the model"):
            antifreeze.step(forward, self.batches[1], optimizer=optimizer)
        self.assertEqual(scarce.count, 2)

    def test_parameters_are_taken_one_at_a_time_where_all_do_not_fit(self):
        class AllAtOnce(torch.optim.SGD):
            def step(self, closure=None):
                if self.param_groups[0]["foreach"] is not False:
                    raise MemoryError
                return super().step(closure)

        model = copy.deepcopy(self.model)
        optimizer, forward = AllAtOnce(model.parameters(), lr=0.1), self.forward_of(model)
        for batch in self.batches:
            optimizer.zero_grad()
            antifreeze.step(forward, batch, optimizer=optimizer)
        self.assert_same(model, self.plain(lambda given: torch.optim.SGD(given, lr=0.1)))

    def test_with_a_scaler_a_function_takes_the_step(self):
        def make(given):
            return torch.optim.SGD(given, lr=0.1)

        model, scaler = copy.deepcopy(self.model), torch.amp.GradScaler("cpu", init_scale=1024.0)
        optimizer, forward = make(model.parameters()), self.forward_of(model)

        def take(optimizer):
            antifreeze.step(
                forward, batch, backward=lambda loss: scaler.scale(loss).backward(), optimizer=optimizer
            )

        for batch in self.batches:
            optimizer.zero_grad()
            take(lambda: (scaler.step(optimizer), scaler.update()))
        self.assert_same(model, self.plain(make))
        with self.assertRaisesRegex(TypeError, "scaler.step"):
            take(optimizer)

    def test_a_function_that_takes_the_step_is_not_repeated(self):
        def step():
            calls.append(1)
            raise MemoryError("none left")

        calls = []
        with self.assertRaisesRegex(MemoryError, "none left .*may have been changed in part"):
            antifreeze.step(self.forward_of(self.model), self.batches[0], optimizer=step)
        self.assertEqual(len(calls), 1)

    def test_the_step_of_an_optimizer_is_as_the_optimizer(self):
        model = copy.deepcopy(self.model)
        optimizer, forward = torch.optim.Adam(model.parameters()), self.forward_of(model)
        for turn, batch in enumerate(self.batches):
            optimizer.zero_grad()
            with Scarce("zeros_like", 3 if turn == 0 else 0):
                antifreeze.step(forward, batch, backward=lambda loss: loss.backward(), optimizer=optimizer.step)
        self.assert_same(model, self.plain(torch.optim.Adam))

    def test_other_errors_are_none_of_ours(self):
        optimizer = torch.optim.LBFGS(self.model.parameters())
        with self.assertRaises(TypeError):
            antifreeze.step(self.forward_of(self.model), self.batches[0], optimizer=optimizer)


if __name__ == "__main__":
    unittest.main()
