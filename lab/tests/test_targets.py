"""Results are compared with the targets."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))

from harness import targets

from catalogue import SCENARIOS

GOOD = {
    "ended": "caught and finished",
    "probe": {"worst": 0.2, "p99": 0.1},
    "idle": {"worst": 0.1, "p99": 0.08},
    "bystanders_killed": [],
    "lost_steps": 0,
    "braked": 1,
    "paused": 1,
    "resumed": 1,
}


def missed_targets(scenario, *results):
    return [j.what for j in targets.judge(SCENARIOS[scenario], list(results)) if not j.is_met]


class Judge(unittest.TestCase):
    def test_a_good_run_misses_nothing(self):
        for scenario in ("leak", "neighbour", "saver", "deaf"):
            self.assertEqual(missed_targets(scenario, GOOD), [], scenario)

    def test_the_median_of_three_counts_for_stalls(self):
        slow = GOOD | {"probe": {"worst": 9.0, "p99": 5.0}}
        self.assertEqual(missed_targets("leak", GOOD, slow, GOOD), [])
        self.assertEqual(len(missed_targets("leak", slow, slow, GOOD)), 2)

    def test_one_killed_bystander_is_too_many(self):
        self.assertEqual(
            missed_targets("leak", GOOD, GOOD, GOOD | {"bystanders_killed": ["bystander-1"]}),
            ["no bystander killed"],
        )

    def test_a_trainer_that_can_catch_must_not_die(self):
        self.assertEqual(len(missed_targets("leak", GOOD | {"ended": "killed"})), 1)
        self.assertEqual(missed_targets("deaf", GOOD | {"ended": "killed"}), [])

    def test_a_pause_that_was_never_lifted_is_missed(self):
        self.assertEqual(len(missed_targets("neighbour", GOOD | {"resumed": 0})), 1)
        self.assertEqual(missed_targets("neighbour", GOOD | {"paused": 0, "resumed": 0}), [])

    def test_a_hung_guest_is_missed(self):
        self.assertEqual(missed_targets("leak", GOOD, {"ended": "hung"}), ["the guest answers"])

    def test_after_a_power_cut_the_last_sample_must_be_young(self):
        died = {"ended": "cut", "died_said": True, "last_sample_before_cut": 0.4}
        self.assertEqual(missed_targets("cut", died), [])
        self.assertEqual(len(missed_targets("cut", died | {"last_sample_before_cut": 2.0})), 1)
        self.assertEqual(len(missed_targets("cut", died | {"died_said": False, "last_sample_before_cut": None})), 2)


if __name__ == "__main__":
    unittest.main()
