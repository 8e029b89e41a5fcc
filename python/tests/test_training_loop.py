"""The training loop of a script, and how it begins at a later step."""

import os
import sys
import tempfile
import textwrap
import unittest

import support  # noqa: F401, puts the package on sys.path
from antifreeze._shim import training_loop


class LoopTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self._folder, self._count = folder.name, 0

    def loop(self, text, made, names=("model", "opt")):
        """The loop that is found when a script calls `step()` for the time `made`."""
        self._count += 1
        path = os.path.join(self._folder, f"train{self._count}.py")
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))
        count, found = 0, []

        def step():
            nonlocal count
            count += 1
            if count == made:
                found.append(training_loop.find_training_loop(sys._getframe(1), names, count))

        with open(path) as file:
            exec(compile(file.read(), path, "exec"), {"step": step, "do": step, "model": 1, "opt": 2, "tqdm": lambda it: it})
        return found[0]

    def test_a_loop_that_counts_steps_begins_at_the_step_of_the_checkpoint(self):
        for first, changed in {
            "for step in range(20):": "for step in range(step, 20):",
            "for i in range(20):": "for i in range(step, 20):",
            "for i in range(0, 2_0):": "for i in range(step, 2_0):",
            "for i in range(1, 20 + 1):  # ü": "for i in range(step + 1, 20 + 1):  # ü",
            "for i in tqdm(range(20)):": "for i in tqdm(range(step, 20)):",
            "for i in enumerate(range(20)):": None,
            "for i in range(2, 20):": None,
            "for i in range(0, 40, 2):": None,
            "for i in [0, 1, 2, 3, 4, 5, 6]:": None,
        }.items():
            with self.subTest(first):
                found = self.loop(f"x = 1\n{first}\n    do()\n", 5)
                self.assertEqual((found["line"], found["indent"], found["code"]), (2, "", changed))

    def test_a_loop_over_epochs_counts_no_steps(self):
        for made in (1, 2, 5, 7):
            found = self.loop("for epoch in range(9):\n    for batch in range(4):\n        do()\n", made)
            self.assertEqual((found["line"], found["code"]), (1, None), made)

    def test_the_loop_may_be_in_a_function_and_the_step_in_another(self):
        found = self.loop(
            """
            def train(net):
                do()

            def main():
                model = 1
                for number in range(9):
                    train(model)

            main()
            """,
            3, names=["model"],
        )
        self.assertEqual((found["line"], found["indent"], found["code"]), (7, "    ", "for number in range(step, 9):"))

    def test_a_loop_that_makes_the_model_is_not_meant(self):
        found = self.loop(
            """
            for fold in range(3):
                model = fold
                for number in range(9):
                    do()
            """,
            3,
        )
        self.assertEqual((found["line"], found["code"]), (4, "for number in range(step, 9):"))

    def test_a_name_that_is_taken_is_not_used(self):
        found = self.loop("def step():\n    do()\nfor i in range(9):\n    step()\n", 3)
        self.assertEqual((found["variable"], found["code"]), ("first_step", "for i in range(first_step, 9):"))

    def test_without_a_loop_there_is_none(self):
        self.assertIsNone(self.loop("do()\n", 1))


if __name__ == "__main__":
    unittest.main()
