"""What scripts may call, without any framework; with those that this interpreter has, more of it."""

import collections
import math
import unittest
import warnings

from support import PYTHON, Scene, needs
import antifreeze
from antifreeze import _tools
from antifreeze._shim import holders, page


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

    @needs("torch")
    def test_no_graph_is_kept(self):
        import torch

        weight = torch.ones(1000, requires_grad=True)
        buffer = antifreeze.RollingBuffer(3, bytes=9000)
        for _ in range(5):
            buffer.append({"loss": (weight * 2).sum(), "all": [weight * 2]})
        self.assertEqual(len(buffer), 2)
        for kept in buffer:
            self.assertFalse(kept["loss"].requires_grad or kept["all"][0].requires_grad)

    @needs("torch")
    def test_no_graph_is_kept_in_whatever_it_comes(self):
        import torch

        Pair = collections.namedtuple("Pair", "loss other")
        weight = torch.ones(2, requires_grad=True)
        buffer = antifreeze.RollingBuffer(9)
        buffer.append(Pair(weight * 2, 1))
        buffer.append(collections.UserDict(loss=weight * 2))
        buffer.append(torch.max(weight * torch.ones(2, 2), dim=0))
        pair, mapping, most = buffer
        self.assertEqual((type(pair), type(mapping)), (Pair, collections.UserDict))
        self.assertFalse(pair.loss.requires_grad or mapping["loss"].requires_grad or most[0].requires_grad)

    @needs("torch")
    def test_a_view_keeps_its_own_part_alone(self):
        import numpy
        import torch

        buffer = antifreeze.RollingBuffer(bytes=1000)
        for make in (torch.zeros, numpy.zeros):
            for _ in range(20):
                buffer.append(make(1_000_000)[:2])
            self.assertLess(sum(holders._bytes(kept) for kept in buffer), 1001)
        whole = torch.zeros(10)
        buffer.append(whole)
        self.assertEqual(buffer[-1].data_ptr(), whole.data_ptr())
        self.assertEqual(_tools._bytes(torch.zeros(1).expand(1_000_000)), 4)

    @needs("torch")
    def test_sparse_and_nested_tensors_are_measured(self):
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for value in (torch.eye(3).to_sparse(), torch.eye(3).to_sparse_csr(), torch.eye(3).to_sparse_csc()):
                buffer = antifreeze.RollingBuffer(bytes=1000)
                buffer.append(value)
                self.assertTrue(24 <= buffer.bytes <= 100, buffer.bytes)
            nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
            self.assertEqual(_tools._bytes(nested), 20)

    @needs("tensorflow")
    def test_tensors_of_tensorflow_are_measured(self):
        import tensorflow

        buffer = antifreeze.RollingBuffer(bytes=1_000_000)
        for _ in range(5):
            buffer.append(tensorflow.zeros(100_000))
        self.assertEqual((len(buffer), buffer.bytes), (2, 800_000))
        self.assertGreater(_tools._bytes(tensorflow.ragged.constant([[1.0], [2.0, 3.0]])), 12)


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
        self.says(collections.UserDict(a=math.nan), "['a'] is nan")
        self.says(collections.deque([1, math.nan]), "[1] is nan")
        self.assertEqual(antifreeze.check_finite(10**400), 10**400)

    @needs("numpy")
    def test_numpy(self):
        import numpy

        self.says(numpy.array([1.0, numpy.nan, numpy.inf]), "x has 2 of 3 values that are not finite", "x")
        self.says(numpy.float32("nan"), "the value is nan")
        antifreeze.check_finite([numpy.arange(3), numpy.array(["text"]), numpy.ones(2, dtype="f2")])
        self.says(numpy.array([math.nan]), "the value is nan")
        self.says(numpy.array(complex(0, math.inf)), "the value is inf")
        self.says(numpy.array([1, math.nan], dtype=object), "[1] is nan")
        self.says(numpy.array([(1, math.nan)], dtype=[("n", "i4"), ("loss", "f4")]), "['loss'] is nan")
        antifreeze.check_finite(numpy.array(["2020-01-01"], dtype="M8[D]"))

    @needs("ml_dtypes")
    def test_kinds_that_numpy_does_not_have_itself(self):
        import ml_dtypes
        import numpy

        bad = "the value has 1 of 2 values that are not finite"
        for kind in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
            self.says(numpy.array([math.nan, 1.0], dtype=kind), bad)
            antifreeze.check_finite(numpy.ones(2, dtype=kind))
        antifreeze.check_finite(numpy.ones(2, dtype=ml_dtypes.int4))

    @needs("torch")
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

    @needs("torch")
    def test_torch_in_other_shapes(self):
        import torch

        some = "the value has 1 of 2 values that are not finite"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            bad = torch.tensor([[1.0, 0.0], [0.0, math.nan]])
            for change in (torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc):
                self.says(change(bad), some)
                antifreeze.check_finite(change(torch.eye(2)))
            self.says(torch.nested.nested_tensor([torch.ones(1), torch.tensor([math.inf])]), some)
            antifreeze.check_finite(torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8))
        self.says(torch.tensor([math.nan, 1]).to(torch.float8_e4m3fn), some)
        self.says(torch.tensor([complex(0, math.nan)]), "the value is nan")
        antifreeze.check_finite([torch.nn.LazyLinear(3), torch.ones(3, device="meta"), torch.nn.Linear])
        words = torch.nn.Embedding(4, 1, sparse=True)
        words(torch.tensor([1])).sum().backward()
        antifreeze.check_finite(words)
        words.weight.grad = words.weight.grad * math.inf
        self.says(words, "the gradient of weight is inf")

    @needs("torch")
    def test_torch_with_rows_of_any_length(self):
        """In a process of its own: it brings a compiler along, which is there once only."""
        script = """
            import antifreeze, torch
            rows = [torch.ones(1), torch.tensor([float("inf")])]
            antifreeze.check_finite(torch.nested.nested_tensor(rows, layout=torch.jagged))
        """
        ended = Scene(self).run(script, PYTHONPATH=PYTHON)
        self.assertIn("the value has 1 of 2 values that are not finite", ended.stderr)

    @needs("jax")
    def test_jax(self):
        import jax.numpy

        antifreeze.check_finite(jax.numpy.ones(3))
        self.says(jax.numpy.array([1.0, math.nan]), "the value has 1 of 2 values that are not finite")
        self.says({"w": jax.numpy.array([[math.inf]])}, "['w'] is inf")
        bad = jax.numpy.array([math.nan, 1.0], dtype=jax.numpy.bfloat16)
        self.says(bad, "the value has 1 of 2 values that are not finite")
        self.says(bad[0], "loss is nan", "loss")
        antifreeze.check_finite([jax.random.key(0), jax.numpy.ones(2, dtype=jax.numpy.bfloat16)])

    @needs("tensorflow")
    def test_tensorflow(self):
        import tensorflow

        antifreeze.check_finite([tensorflow.ones(3), tensorflow.constant([1, 2]), tensorflow.Variable([1.0])])
        self.says(tensorflow.constant([1.0, math.nan]), "the value has 1 of 2 values that are not finite")
        self.says(tensorflow.constant(math.nan), "loss is nan", "loss")
        self.says(tensorflow.constant([math.nan]), "loss is nan", "loss")
        some = "the value has 1 of 2 values that are not finite"
        bad = tensorflow.constant([1.0, math.nan])
        self.says(tensorflow.cast(bad, "bfloat16"), some)
        self.says(tensorflow.complex(tensorflow.zeros(2), bad), some)
        self.says(tensorflow.SparseTensor([[0], [2]], bad, [4]), some)
        self.says(tensorflow.IndexedSlices(bad, tensorflow.constant([0, 2])), some)
        self.says(tensorflow.ragged.constant([[1.0], [], [math.nan]]), some)
        self.says(tensorflow.Variable(bad), some)
        antifreeze.check_finite([tensorflow.constant(["text"]), tensorflow.SparseTensor([[0]], [1.0], [4])])

    @needs("keras")
    def test_keras(self):
        import keras

        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, name="last")], name="net")
        self.assertIs(antifreeze.check_finite(model), model)
        model.layers[-1].bias.assign([math.nan])
        with self.assertRaisesRegex(FloatingPointError, "last/bias is nan"):
            antifreeze.check_finite(model)


class PhaseTest(unittest.TestCase):
    def test_a_phase_stands_in_the_page_and_goes(self):
        script = """
            import antifreeze
            from antifreeze._shim.trainer import get_trainer
            from antifreeze._shim.page import PHASE
            now = lambda: get_trainer().steps.words[PHASE]
            seen = [now()]
            with antifreeze.phase("evaluation"):
                seen.append(now())
                with antifreeze.phase("saving"):
                    seen.append(now())
                seen.append(now())
            print(seen, now())
        """
        ended = Scene(self).run(script, PYTHONPATH=PYTHON)
        self.assertEqual(ended.stdout, "[0, 5, 6, 5] 0\n", ended)

    def test_their_numbers_are_those_of_the_page(self):
        for name, number in _tools.PHASES.items():
            self.assertEqual(getattr(page, name.upper()), number)

    def test_one_that_nobody_knows_is_told(self):
        with self.assertRaisesRegex(ValueError, "unknown phase 'lunch'"):
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
