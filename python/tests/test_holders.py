"""How much a name holds is told from a part of it, and is never more than there is."""

import os
import sys
import tempfile
import unittest
from unittest import mock

import support  # noqa: F401, puts the package on sys.path
from antifreeze._shim import holders


class EstimateTest(unittest.TestCase):
    def test_what_is_held_many_times_is_there_once(self):
        number = 10**6
        rows = {key: [key] * 200 for key in range(number, number + 1000)}
        really = 1000 * (200 * 8 + 56 + 28)
        self.assertLess(holders.estimate_bytes(rows, 2), 1.3 * really)
        self.assertGreater(holders.estimate_bytes(rows, 2), 0.9 * really)
        shared = bytes(1_000_000)
        self.assertLess(holders.estimate_bytes([shared] * 1000, 2), 40_000_000)
        # Deeper down as well.
        self.assertLess(holders.estimate_bytes([[shared] for _ in range(32)], 2), 2_000_000)

    def test_different_things_are_counted_each(self):
        self.assertGreater(holders.estimate_bytes([bytes(1000) for _ in range(1000)], 2), 1_000_000)

    def test_numbers_in_lists_deep_down_are_counted(self):
        records = [{"weights": [float(number) for number in range(1000)]} for _ in range(50)]
        self.assertGreater(holders.estimate_bytes(records, 2), 50 * 1000 * (8 + 24))
        self.assertLess(holders.estimate_bytes([{"weights": [0.0] * 1000} for _ in range(50)], 2), 50 * 1000 * 12)

    def test_no_name_is_told_to_hold_more_than_the_process_has(self):
        told = []
        with mock.patch.object(holders.event_log, "log_event", lambda what, **fields: told.append(fields)):
            with mock.patch.object(holders, "find_holdings", lambda frame: {"many": holders.Holding("", "", 1, 1 << 60, 0)}):
                holders.HolderWatch().take_sample(1, None)
        self.assertLess(told[0]["names"][0]["bytes"], 2 * holders.resident_bytes())

    def test_a_look_that_is_asked_for_during_a_look_is_left_out(self):
        watch, looks = holders.HolderWatch(), []

        def look(frame):
            looks.append(frame)
            if len(looks) < 5:
                watch.take_sample(1, frame)
                watch.sample_if_due(1, holders.WATCH_RUNG, frame)
            return {}

        with mock.patch.object(holders.event_log, "log_event", lambda what, **fields: None):
            with mock.patch.object(holders, "find_holdings", look):
                watch.take_sample(1, None)
                self.assertEqual(len(looks), 1)
                watch.take_sample(1, None)
                self.assertEqual(len(looks), 2)


class ScriptTest(unittest.TestCase):
    def test_packages_in_any_folder_are_not_the_script_s(self):
        with tempfile.TemporaryDirectory() as folder:
            vendored, own = os.path.join(folder, "vendored"), os.path.join(folder, "own")
            os.makedirs(os.path.join(vendored, "net-1.0.dist-info"))
            os.makedirs(os.path.join(own, "net.egg-info"))
            with mock.patch.object(sys, "path", [own, vendored, *sys.path]):
                self.assertFalse(holders._is_script_file(os.path.join(vendored, "net/layers/__init__.py")))
                self.assertFalse(holders._is_script_file(os.path.join(vendored, "six.py")))
                self.assertTrue(holders._is_script_file(os.path.join(own, "net/train.py")))
                self.assertTrue(holders._is_script_file(os.path.join(folder, "train.py")))
        self.assertFalse(holders._is_script_file("/usr/lib/python3/dist-packages/torch/__init__.py"))


if __name__ == "__main__":
    unittest.main()
