"""The lines of a file on which something grows."""

import os
import tempfile
import textwrap
import unittest

import support  # noqa: F401, puts the package on sys.path
from antifreeze._shim.growth import growth_lines


class GrowthTest(unittest.TestCase):
    def lines(self, text, name, scope="train"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(textwrap.dedent(text))
            return growth_lines(path, name, scope)

    def test_each_way_to_grow_is_known(self):
        text = """
        def train():
            history, total, seen = [], 0, {}
            for batch in loader:
                history.append(batch)
                total += batch
                seen[batch] = 1
                state = state + [batch]
        """
        self.assertEqual(self.lines(text, "history"), [5])
        self.assertEqual(self.lines(text, "total"), [6])
        self.assertEqual(self.lines(text, "seen"), [7])
        self.assertEqual(self.lines(text, "state"), [8])

    def test_a_loop_comes_before_what_runs_once(self):
        text = """
        class Fitter:
            def train(self):
                self.log.append(0)
                while True:
                    self.log.append(1)
        """
        self.assertEqual(self.lines(text, "log"), [6, 4])

    def test_another_function_counts_when_its_own_has_none(self):
        text = """
        def keep(value):
            kept.append(value)
        def train():
            kept = []
            for value in values:
                keep(value)
        """
        self.assertEqual(self.lines(text, "kept"), [3])

    def test_what_is_no_python_has_no_lines(self):
        self.assertEqual(self.lines("def (", "x"), [])


if __name__ == "__main__":
    unittest.main()
