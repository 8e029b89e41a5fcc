"""What antifreeze says, and what the scripts expect."""

import json
import os
import tempfile
import unittest

import here  # noqa: F401
from parts.checker import Finding, Sources, split_cells, checksum, parse_findings
from parts.recall import Mark, Script, unexpected_findings, parse_marks, score_per_rule, score, split_cases

NOTEBOOK = json.dumps({"cells": [
    {"cell_type": "markdown", "source": ["# Title"]},
    {"cell_type": "code", "source": ["import torch\n", "x = 1  # expect: dataset-on-gpu"]},
]})


def item(file, cell, line):
    return {
        "code": "AF100", "name": "full-batch", "severity": "error", "message": "m", "help": "h",
        "file": file, "cell": cell, "start": {"line": line, "column": 1},
        "end": {"line": line + 1, "column": 4},
    }


def finding(rule, line, file="a.wrong.py", cell=None):
    return Finding(file, rule, cell, line, line, "m")


class Findings(unittest.TestCase):
    def test_a_finding_knows_its_line(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (("a.py", "one\r\ntwo\n"), ("b.ipynb", NOTEBOOK)):
                with open(os.path.join(folder, name), "w", newline="") as file:
                    file.write(text)
            output = json.dumps([item("a.py", None, 2), item("b.ipynb", 2, 1), item("a.py", None, 9)])
            first, second, beyond = parse_findings(output, Sources(folder))
        self.assertEqual((first.place, first.text, first.last_line), ("2", checksum("two"), 3))
        self.assertEqual((second.place, second.text), ("2:1", checksum("import torch")))
        self.assertEqual(beyond.text, checksum(""))


class Marks(unittest.TestCase):
    def test_they_stand_at_the_end_of_a_line(self):
        text = b"x = 1\ny = 2  # expect: full-batch, dataset-on-gpu\nz = 3  # or: full-batch\n# expect: !\n"
        expected, instead = parse_marks(split_cells("a.py", text))
        self.assertEqual(expected, [Mark("full-batch", "2"), Mark("dataset-on-gpu", "2")])
        self.assertEqual(instead, [Mark("full-batch", "3")])

    def test_in_a_notebook_they_count_by_cell(self):
        expected, _ = parse_marks(split_cells("a.ipynb", NOTEBOOK.encode()))
        self.assertEqual(expected, [Mark("dataset-on-gpu", "2:2")])


class Cases(unittest.TestCase):
    def test_a_file_is_split_at_its_separators(self):
        text = "# Cases.\n\n# ======== a.wrong.py ========\nx = 1\n\n\n# ======== a.right.py ========\ny\n"
        self.assertEqual(split_cases(text), [("a.wrong.py", "x = 1\n\n"), ("a.right.py", "y\n")])


class Scored(unittest.TestCase):
    script = Script([Mark("full-batch", "2")], [Mark("full-batch", "5")])

    def of(self, *found):
        said = {"a.wrong.py": list(found)}
        hits, misses = score({"a.wrong.py": self.script}, said)
        return len(hits), len(misses), len(unexpected_findings({"a.wrong.py": self.script}, said))

    def test_the_marked_line_or_the_one_in_its_stead(self):
        self.assertEqual(self.of(finding("full-batch", 2)), (1, 0, 0))
        self.assertEqual(self.of(finding("full-batch", 5)), (1, 0, 0))
        self.assertEqual(self.of(finding("full-batch", 2), finding("full-batch", 5)), (1, 0, 0))

    def test_another_line_or_rule_is_a_miss_and_a_false_finding(self):
        self.assertEqual(self.of(), (0, 1, 0))
        self.assertEqual(self.of(finding("full-batch", 3)), (0, 1, 1))
        self.assertEqual(self.of(finding("double-softmax", 2)), (0, 1, 1))

    def test_each_rule_has_its_own_count(self):
        hit, miss = ("a", Mark("full-batch", "1")), ("b", Mark("full-batch", "1"))
        other = ("c", Mark("double-softmax", "1"))
        self.assertEqual(
            score_per_rule([hit], [miss, other]), {"double-softmax": (0, 1), "full-batch": (1, 2)}
        )


if __name__ == "__main__":
    unittest.main()
