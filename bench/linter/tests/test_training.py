"""What counts as training code."""

import json
import unittest

import here  # noqa: F401
from parts.training import training_kind

LOOP = "import torch\nfor x in loader:\n    loss = model(x)\n    loss.backward()\n"


def kind(text, path="train.py"):
    return training_kind(path, text.encode())


class Trains(unittest.TestCase):
    def test_a_loop_of_its_own(self):
        self.assertEqual(kind(LOOP), "loop")
        self.assertEqual(kind("import tensorflow as tf\nwith tf.GradientTape() as tape: pass\n"), "loop")
        self.assertEqual(kind("import lightning\nclass A:\n    def training_step(self): ...\n"), "loop")

    def test_somebody_elses_loop(self):
        self.assertEqual(kind("from keras import Model\nmodel.fit(x, y)\n"), "trainer")
        self.assertEqual(kind("import transformers\ntrainer.train()\n"), "trainer")
        self.assertIsNone(kind("import torch\nscaler.fit(x)\n"))

    def test_code_without_a_framework_does_not_train(self):
        self.assertIsNone(kind(LOOP.replace("torch", "mytorch")))

    def test_a_model_alone_does_not_train(self):
        self.assertIsNone(kind("import torch\nclass Net(torch.nn.Module): ...\n"))

    def test_comments_and_documentation_are_no_code(self):
        self.assertIsNone(kind("import torch\n# loss.backward()\nx = 1  # loss.backward()\n"))
        self.assertIsNone(kind('import torch\n"""\nloss.backward()\n"""\n'))
        self.assertEqual(kind('"""About."""\n' + LOOP + '"""The end."""\n'), "loop")

    def test_tests_are_no_training_code(self):
        for path in ("tests/train.py", "a/test_loop.py", "a/loop_test.py", "conftest.py"):
            self.assertIsNone(kind(LOOP, path), path)
        for path in ("latest/train.py", "a/contest.py", "a/attestation.py"):
            self.assertEqual(kind(LOOP, path), "loop", path)

    def test_of_a_notebook_the_code_cells_count(self):
        def notebook(kind_of_cell):
            cells = [
                {"cell_type": "code", "source": ["import torch\n"]},
                {"cell_type": kind_of_cell, "source": "loss.backward()"},
            ]
            return json.dumps({"cells": cells})

        self.assertEqual(kind(notebook("code"), "a.ipynb"), "loop")
        self.assertIsNone(kind(notebook("markdown"), "a.ipynb"))

    def test_what_cannot_be_read_is_left(self):
        self.assertIsNone(training_kind("a.py", LOOP.encode("utf-16")))
        self.assertIsNone(kind("{", "a.ipynb"))
        self.assertIsNone(kind("[]", "a.ipynb"))
        self.assertIsNone(kind(LOOP, "a.txt"))


if __name__ == "__main__":
    unittest.main()
