"""Labels and the findings they belong to."""

import os
import tempfile
import unittest

import here
from parts import labels
from parts.checker import Finding, checksum
from parts.label import format_excerpt
from parts.labels import Key, Label, match_labels


def finding(line, text="total += loss", file="a/train.py", rule="graph-in-accumulator", cell=None):
    return Finding(file, rule, cell, line, line, "it grows", text=checksum(text))


def labelled(*findings, verdict="right"):
    return {labels.finding_key(one): Label(verdict, "it does") for one in findings}


class Match(unittest.TestCase):
    def test_a_label_belongs_to_its_place(self):
        matched = match_labels([finding(3)], labelled(finding(3)))
        self.assertEqual(len(matched.labelled), 1)
        self.assertEqual((matched.unlabelled, matched.unused), ([], []))

    def test_a_line_that_moved_keeps_its_label(self):
        matched = match_labels([finding(30)], labelled(finding(3)))
        self.assertEqual(len(matched.labelled), 1)

    def test_a_line_that_changed_does_not(self):
        matched = match_labels([finding(3, "total += other")], labelled(finding(3)))
        self.assertEqual(len(matched.unlabelled), 1)
        self.assertEqual(len(matched.unused), 1)

    def test_indentation_is_no_change(self):
        self.assertEqual(checksum("    a = b"), checksum("a = b\r"))

    def test_a_label_serves_one_finding_the_nearest(self):
        known = {**labelled(finding(10)), **labelled(finding(50), verdict="wrong")}
        matched = match_labels([finding(52), finding(10), finding(90)], known)
        verdicts = {found.line: label.verdict for found, label in matched.labelled}
        self.assertEqual(verdicts, {10: "right", 52: "wrong"})
        self.assertEqual([found.line for found in matched.unlabelled], [90])

    def test_another_rule_or_file_has_its_own_label(self):
        others = [finding(3, rule="missing-zero-grad"), finding(3, file="b/train.py")]
        self.assertEqual(match_labels(others, labelled(finding(3))).unlabelled, others)

    def test_a_cell_of_a_notebook_counts_first(self):
        known = {**labelled(finding(5, cell=2)), **labelled(finding(1, cell=9), verdict="wrong")}
        [(_, label)] = match_labels([finding(1, cell=3)], known).labelled
        self.assertEqual(label.verdict, "right")


class Precision(unittest.TestCase):
    def test_what_is_doubtful_is_not_right(self):
        pairs = [(finding(1), Label(verdict, "")) for verdict in ("right", "right", "wrong", "doubtful")]
        [(rule, counts)] = labels.count_verdicts(pairs).items()
        self.assertEqual(rule, "graph-in-accumulator")
        self.assertEqual(labels.precision_percent(counts), 50)


class File(unittest.TestCase):
    def read(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return labels.read_labels(file.name)

    def test_a_line_is_read_as_it_was_written(self):
        key = Key('my "notes"/a b.ipynb', "full-batch", "4:12", "01234567")
        text = labels.format_label(key, "doubtful", 'says "all of it": 8 GB')
        self.assertEqual(self.read(text), {key: Label("doubtful", 'says "all of it": 8 GB')})

    def test_a_verdict_without_a_reason_is_refused(self):
        for text in ('"f r 1 x" = "right"', '"f r 1 x" = "perhaps: so"', '"f" = "right: so"'):
            with self.assertRaises(ValueError, msg=text):
                self.read(text)

    def test_the_labels_of_this_repository_can_be_read(self):
        labels.read_labels(os.path.join(here.CHECK, "labels.toml"))


class Excerpt(unittest.TestCase):
    def test_the_line_is_marked_and_the_label_is_prepared(self):
        lines = [f"line {number}" for number in range(1, 101)]
        text = format_excerpt(finding(50), lines)
        self.assertIn(">    50 | line 50", text)
        self.assertIn("     35 | line 35", text)
        self.assertNotIn("line 34", text)
        self.assertIn(f'"a/train.py graph-in-accumulator 50 {checksum("total += loss")}" = ', text)


if __name__ == "__main__":
    unittest.main()
