"""What scripts may call, without any framework; with those that this interpreter has, more of it."""

import importlib.util
import math
import unittest

import support

import antifreeze
from antifreeze import _tools
from antifreeze._shim import page


def has(name):
    return importlib.util.find_spec(name) is not None


class RollingBufferTest(unittest.TestCase):
    def test_the_last_ones_are_kept(self):
        buffer = antifreeze.RollingBuffer(2)
        self.assertTrue(math.isnan(buffer.mean()))
        buffer.extend([1, 2, 3])
        self.assertEqual((list(buffer), len(buffer), buffer[-1], buffer[:1], buffer.mean()), ([2, 3], 2, 3, [2], 2.5))
        buffer.clear()
        self.assertEqual((list(buffer), buffer.bytes), ([], 0))

    def test_bytes_are_a_bound_too(self):
        buffer = antifreeze.RollingBuffer(bytes=1000)
        for _ in range(100):
            buffer.append(bytes(200))
            self.assertLessEqual(buffer.bytes, 1000)
        self.assertEqual(len(buffer), 4)
        buffer.append(bytes(5000))
        self.assertEqual(len(buffer), 1)

    def test_one_without_bounds_is_refused(self):
        for arguments in ((), (0,)):
            with self.assertRaises(ValueError):
                antifreeze.RollingBuffer(*arguments)

    @unittest.skipUnless(has("torch"), "there is no torch")
    def test_no_graph_is_kept(self):
        import torch

        weight = torch.ones(1000, requires_grad=True)
        buffer = antifreeze.RollingBuffer(3, bytes=9000)
        for _ in range(5):
            buffer.append({"loss": (weight * 2).sum(), "all": [weight * 2]})
        self.assertEqual(len(buffer), 2)
        for kept in buffer:
            self.assertFalse(kept["loss"].requires_grad or kept["all"][0].requires_grad)


class CheckFiniteTest(unittest.TestCase):
    def says(self, value, text, name=None):
        with self.assertRaises(FloatingPointError) as raised:
            antifreeze.check_finite(value, name)
        self.assertEqual(str(raised.exception), text)

    def test_what_is_finite_is_given_back(self):
        for value in (1, 0.5, 2j, "text", None, True, [1.0, {"a": (2.0,)}], b"bytes"):
            self.assertIs(antifreeze.check_finite(value), value)

    def test_what_is_not_is_told_with_its_place(self):
        self.says(math.nan, "the value is nan")
        self.says(-math.inf, "loss is -inf", "loss")
        self.says({"a": [1.0, math.inf]}, "['a'][1] is inf")
        self.says(complex(0, math.nan), "z is nan", "z")

    @unittest.skipUnless(has("numpy"), "there is no numpy")
    def test_numpy(self):
        import numpy

        self.says(numpy.array([1.0, numpy.nan, numpy.inf]), "x has 2 of 3 values that are not finite", "x")
        self.says(numpy.float32("nan"), "the value is nan")
        antifreeze.check_finite([numpy.arange(3), numpy.array(["text"]), numpy.ones(2, dtype="f2")])

    @unittest.skipUnless(has("torch"), "there is no torch")
    def test_torch(self):
        import torch

        model = torch.nn.Linear(2, 1)
        antifreeze.check_finite((model, torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.bfloat16)))
        self.says(torch.tensor(math.nan), "loss is nan", "loss")
        model.weight.grad = torch.tensor([[1.0, math.inf]])
        self.says(model, "the gradient of weight has 1 of 2 values that are not finite")
        with torch.no_grad():
            model.bias.fill_(math.nan)
        model.weight.grad = None
        self.says(model, "net.bias is nan", "net")

    @unittest.skipUnless(has("jax"), "there is no jax")
    def test_jax(self):
        import jax.numpy

        antifreeze.check_finite(jax.numpy.ones(3))
        self.says(jax.numpy.array([1.0, math.nan]), "the value has 1 of 2 values that are not finite")

    @unittest.skipUnless(has("tensorflow"), "there is no tensorflow")
    def test_tensorflow(self):
        import tensorflow

        antifreeze.check_finite([tensorflow.ones(3), tensorflow.constant([1, 2]), tensorflow.Variable([1.0])])
        self.says(tensorflow.constant([1.0, math.nan]), "the value has 1 of 2 values that are not finite")
        self.says(tensorflow.constant(math.nan), "loss is nan", "loss")


class PhaseTest(unittest.TestCase):
    def test_a_phase_stands_in_the_page_and_goes(self):
        script = """
            import antifreeze
            from antifreeze._shim.trainer import trainer
            from antifreeze._shim.page import PHASE
            now = lambda: trainer().steps.words[PHASE]
            seen = [now()]
            with antifreeze.phase("evaluation"):
                seen.append(now())
                with antifreeze.phase("saving"):
                    seen.append(now())
                seen.append(now())
            print(seen, now())
        """
        ended = support.Scene(self).run(script, PYTHONPATH=support.PYTHON)
        self.assertEqual(ended.stdout, "[0, 5, 6, 5] 0\n", ended)

    def test_their_numbers_are_those_of_the_page(self):
        for name, number in _tools.PHASES.items():
            self.assertEqual(getattr(page, name.upper()), number)

    def test_one_that_nobody_knows_is_told(self):
        with self.assertRaisesRegex(ValueError, "no phase 'lunch'"):
            with antifreeze.phase("lunch"):
                pass


class ModuleTest(unittest.TestCase):
    def test_all_of_it_is_there(self):
        for name in antifreeze.__all__:
            self.assertTrue(getattr(antifreeze, name).__doc__)
        with self.assertRaises(AttributeError):
            antifreeze.nothing


if __name__ == "__main__":
    unittest.main()
