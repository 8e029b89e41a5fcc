"""How much a name holds is told from a part of it, and is never more than there is."""

import unittest
from unittest import mock

import support

from antifreeze._shim import holders


class EstimateTest(unittest.TestCase):
    def test_what_is_held_many_times_is_there_once(self):
        number = 10**6
        rows = {key: [key] * 200 for key in range(number, number + 1000)}
        really = 1000 * (200 * 8 + 56 + 28)
        self.assertLess(holders.estimate(rows, 2), 1.3 * really)
        self.assertGreater(holders.estimate(rows, 2), 0.9 * really)
        shared = bytes(1_000_000)
        self.assertLess(holders.estimate([shared] * 1000, 2), 40_000_000)
        # Deeper down as well.
        self.assertLess(holders.estimate([[shared] for _ in range(32)], 2), 2_000_000)

    def test_different_things_are_counted_each(self):
        self.assertGreater(holders.estimate([bytes(1000) for _ in range(1000)], 2), 1_000_000)

    def test_no_name_is_told_to_hold_more_than_the_process_has(self):
        told = []
        with mock.patch.object(holders.report, "tell", lambda what, **fields: told.append(fields)):
            with mock.patch.object(holders, "look", lambda frame: {"many": holders.Holding("", "", 1, 1 << 60, 0)}):
                holders.Watch().look(1, None)
        self.assertLess(told[0]["names"][0]["bytes"], 2 * holders.resident())


if __name__ == "__main__":
    unittest.main()
