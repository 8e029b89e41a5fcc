"""The remedies of small scripts are applied to them, and hold. How the runner applies and judges."""

import concurrent.futures
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
REMEDIES = os.path.dirname(HERE)
sys.path[1:1] = [REMEDIES, os.path.dirname(REMEDIES)]
sys.dont_write_bytecode = True

import trial
from measures.bench import find_program


class QuickTest(unittest.TestCase):
    def test_what_a_verdict_offers_mends_the_script_that_earned_it(self):
        program, python = find_program(), os.environ["ANTIFREEZE_TEST_PYTHON"]
        scripts = trial.scripts(os.path.join(REMEDIES, "quick"))
        self.assertGreaterEqual(len(scripts), 4)

        def outcome_of(script):
            with tempfile.TemporaryDirectory(dir="/var/tmp") as scratch:
                return trial.try_remedies(program, python, script, scratch)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            outcomes = list(pool.map(outcome_of, scripts))
        for script, outcome in zip(scripts, outcomes):
            with self.subTest(script.name):
                told = f"{outcome.detail}\n{outcome.verdict['causes']}"
                self.assertEqual(outcome.kind, "holds", told)
                self.assertEqual(list(outcome.named), sorted(script.lines), told)
                remedies = [remedy["text"] for cause in outcome.verdict["causes"] for remedy in cause["remedies"]]
                self.assertEqual(len(remedies), len(set(remedies)), "a remedy is offered twice")
                self.assertFalse([text for text in remedies if "antifreeze.step" in text and "norm" in script.name])


class ApplyTest(unittest.TestCase):
    def changed(self, text, *edits):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w") as file:
                file.write(text)
            trial.apply([{"file": "train.py", "imports": [], **edit} for edit in edits], folder)
            with open(path) as file:
                return file.read()

    def test_two_edits_of_one_statement_and_an_import(self):
        text = '"""Trains."""\nfor step in steps:\n    kept.append(\n        step)\n'
        statement = {"line": 3, "last_line": 4, "before": "kept.append(\n        step)"}
        code, imports = "kept.append(\n        np.mean(step))", ["import numpy as np"]
        changed = self.changed(
            text,
            {**statement, "action": "replace", "code": code, "imports": imports},
            {**statement, "action": "insert-after", "code": "del kept[:-5]"},
        )
        self.assertEqual(
            changed,
            '"""Trains."""\nimport numpy as np\nfor step in steps:\n    kept.append(\n        np.mean(step))\n'
            "    del kept[:-5]\n",
        )

    def test_a_line_that_is_another_now_is_not_changed(self):
        edit = {"line": 1, "last_line": 1, "before": "a = 1", "action": "replace", "code": "a = 2"}
        self.assertEqual(self.changed("a = 1\n", edit), "a = 2\n")
        with self.assertRaises(ValueError):
            self.changed("b = 1\n", edit)

    def test_what_is_no_python_is_not_written(self):
        edit = {"line": 1, "last_line": 1, "before": "a = 1", "action": "replace", "code": "a ="}
        with self.assertRaises(SyntaxError):
            self.changed("a = 1\n", edit)


class NamedTest(unittest.TestCase):
    def test_lines_are_read_from_the_place_the_words_and_the_edits_of_the_first_cause(self):
        remedy = {"text": "replace t.py:4", "edits": [{"line": 7, "last_line": 8}]}
        evidence = [{"text": "as well (t.py:3)"}]
        first = {"location": {"line": 2}, "summary": "", "evidence": evidence, "remedies": [remedy]}
        second = {"location": {"line": 9}, "summary": "", "evidence": [], "remedies": []}
        self.assertEqual(trial.named_lines({"causes": [first, second]}, range(10)), [2, 3, 4, 7, 8])


if __name__ == "__main__":
    unittest.main()
