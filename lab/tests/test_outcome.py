"""The result is computed from logs."""

import json
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
LAB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(LAB, "guest"))

import experiment
import outcome


def log_of(*entries, tail=""):
    """A trainer's log, one entry a second; an entry is a word, or a word and its number."""
    with tempfile.NamedTemporaryFile("w") as file:
        for t, entry in enumerate(entries):
            what, *n = (entry,) if isinstance(entry, str) else entry
            file.write(json.dumps({"t": t, "what": what} | ({"n": n[0]} if n else {})) + "\n")
        file.write(tail)
        file.flush()
        log = outcome.TrainerLog(file.name)
        log.read_new()
    return log


class Ending(unittest.TestCase):
    def test_every_ending_has_a_name(self):
        step, saved = ("step", 9), ("saved", 9)
        for expected, entries, status in [
            ("running", [step], None),
            ("finished", [step, "finished"], 0),
            ("caught and finished", [step, ("caught", 9), "finished"], 0),
            ("saved and stopped", [step, "stopping", saved], 143),
            ("saved and stopped", [step, "stopping", saved], 75),
            ("stopped", [saved, step, "stopping"], 143),
            ("stopped", [step], 75),
            ("stopped", [step], -15),
            ("killed", [saved, step], -9),
            ("killed", [step], 137),
            ("killed", [step], -11),
            ("failed", [step], 1),
        ]:
            with self.subTest(expected, status=status):
                self.assertEqual(outcome.describe_ending(log_of(*entries), status), expected)

    def test_steps_since_the_last_save_are_lost(self):
        self.assertEqual(outcome.count_lost_steps(log_of(("step", 5), ("saved", 5), ("step", 8))), 3)
        self.assertEqual(outcome.count_lost_steps(log_of(("step", 8))), 8)
        self.assertEqual(outcome.count_lost_steps(log_of(("step", 8), "finished")), 0)

    def test_an_incomplete_last_line_is_left_out(self):
        self.assertEqual(log_of(("step", 1), tail='{"t": 2, "wh').highest("step"), 1)


class FirstWarning(unittest.TestCase):
    def test_messages_before_the_onset_are_no_warning(self):
        self.assertEqual(outcome.seconds_to_first_warning([(1.0, "hello"), (5.5, "short")], 2.0), 3.5)
        self.assertIsNone(outcome.seconds_to_first_warning([(1.0, "hello")], 2.0))

    def test_without_an_onset_no_message_is_a_warning(self):
        self.assertIsNone(outcome.seconds_to_first_warning([(1.0, "hello")], None))


class Messages(unittest.TestCase):
    def test_the_messages_that_are_counted_are_those_of_antifreeze(self):
        with open(os.path.join(LAB, "../crates/view/src/sentence.rs")) as file:
            source = file.read()
        for beginning in (experiment.BRAKED, experiment.PAUSED, experiment.RESUMED):
            self.assertIn('"' + beginning, source)


class Delays(unittest.TestCase):
    def delays(self, text, **more):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(text)
            file.flush()
            return outcome.summarize_delays(file.name, **more)

    def test_a_missed_beat_lasts_until_the_end(self):
        beats = "10.0 0.05 0 0 0\n10.1 0.06 0 0 0\n"
        self.assertEqual(self.delays(beats)["worst"], 0.06)
        stuck = self.delays(beats, stuck_until=12.1)
        self.assertAlmostEqual(stuck["worst"], 2.0, delta=0.11)
        self.assertGreater(stuck["beats"], 20)

    def test_without_beats_there_are_no_delays(self):
        self.assertIsNone(self.delays(""))
        self.assertIsNone(outcome.summarize_delays(os.path.join(LAB, "no-such-file")))


if __name__ == "__main__":
    unittest.main()
