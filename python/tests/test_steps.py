"""Steps and phases, from when things begin and end."""

import unittest

from antifreeze._shim import page
from antifreeze._shim.steps import Steps


class Optimizer:
    """Has an identity, and can be referred to weakly."""


class StepsTest(unittest.TestCase):
    def setUp(self):
        self.ends = []
        self.slot = page.Slot(bytearray(4 * page.WORDS), 0)
        self.steps = Steps(self.slot, lambda: self.ends.append(self.steps.count))

    def phase(self):
        return self.slot.words[page.PHASE]

    def data(self, is_training=True):
        self.steps.data_begins()
        self.steps.data_ends(is_training)

    def backward(self):
        self.steps.backward_begins()
        self.steps.backward_ends()

    def step(self, optimizer):
        self.steps.optimizer_begins(optimizer)
        self.steps.optimizer_ends()

    def test_a_plain_loop_has_its_phases_and_ends_a_step_when_it_waits_for_data(self):
        optimizer, seen = Optimizer(), []
        for _ in range(3):
            self.steps.data_begins()
            seen.append(self.phase())
            self.steps.data_ends(True)
            seen.append(self.phase())
            self.steps.backward_begins()
            seen.append(self.phase())
            self.steps.backward_ends()
            self.steps.optimizer_begins(optimizer)
            seen.append(self.phase())
            self.steps.optimizer_ends()
        self.steps.data_begins()
        self.assertEqual(seen, [page.DATA, page.FORWARD, page.BACKWARD, page.OPTIMIZER] * 3)
        self.assertEqual(self.ends, [1, 2, 3])
        self.assertEqual(self.slot.longs[page.STEPS // 2], 3)

    def test_two_optimizers_a_batch_are_one_step(self):
        critic, generator = Optimizer(), Optimizer()
        for _ in range(4):
            self.data()
            for optimizer in (critic, generator):
                self.backward()
                self.step(optimizer)
        self.data()
        self.assertEqual((self.steps.count, self.steps.updates), (4, 8))
        self.assertEqual(self.ends, [1, 2, 3, 4])

    def test_an_optimizer_that_calls_itself_makes_one_step(self):
        optimizer = Optimizer()
        self.steps.optimizer_begins(optimizer)
        self.steps.optimizer_begins(optimizer)
        self.steps.optimizer_ends()
        self.steps.optimizer_ends()
        self.assertEqual(self.steps.updates, 1)

    def test_optimizers_within_backward_end_no_step_there(self):
        optimizers = [Optimizer(), Optimizer(), Optimizer()]
        for _ in range(2):
            self.data()
            self.steps.backward_begins()
            for optimizer in optimizers:
                self.step(optimizer)
                self.assertEqual(self.phase(), page.BACKWARD)
            self.steps.backward_ends()
        self.data()
        self.assertEqual((self.steps.count, self.ends), (2, [1, 2]))

    def test_without_a_loader_a_step_ends_with_its_optimizer(self):
        optimizer = Optimizer()
        for _ in range(2):
            self.backward()
            self.step(optimizer)
        self.assertEqual(self.ends, [1, 2])
        self.assertEqual(self.phase(), page.FORWARD)

    def test_backward_within_a_step_is_part_of_it(self):
        optimizer = Optimizer()
        self.data()
        self.steps.optimizer_begins(optimizer)
        self.backward()
        self.assertEqual(self.phase(), page.OPTIMIZER)
        self.steps.optimizer_ends()
        self.data()
        self.assertEqual(self.ends, [1])

    def test_accumulated_batches_are_one_step(self):
        optimizer = Optimizer()
        for number in range(8):
            self.data()
            self.backward()
            if number % 4 == 3:
                self.step(optimizer)
        self.data()
        self.assertEqual((self.steps.count, self.ends), (2, [1, 2]))

    def test_what_failed_leaves_nothing_open(self):
        optimizer = Optimizer()
        self.data()
        self.steps.backward_begins()  # and runs out of memory
        self.data()
        self.assertEqual(self.phase(), page.FORWARD)
        self.steps.optimizer_begins(optimizer)  # and fails
        self.steps.data_begins()
        self.assertEqual(self.phase(), page.DATA)
        self.steps.data_ends(True)
        self.step(optimizer)
        self.assertEqual(self.steps.updates, 1)

    def test_evaluation_is_told_from_training(self):
        self.data(is_training=False)
        self.assertEqual(self.phase(), page.EVALUATION)


if __name__ == "__main__":
    unittest.main()
