"""Steps and phases, from when things begin and end."""

import gc
import threading
import unittest

import support  # finds the package
from antifreeze import MemoryPressure
from antifreeze._shim import page, report
from antifreeze._shim.events import Mark
from antifreeze._shim.steps import Steps


class Optimizer:
    """Has an identity, and can be referred to weakly."""


class SafelyTest(unittest.TestCase):
    def test_an_error_of_ours_ends_there_and_a_request_to_end_does_not(self):
        with report.safely("a test"):
            raise ValueError("ours")
        with self.assertRaises(MemoryPressure), report.safely("a test"):
            raise MemoryPressure("asked to end")


class StepsTest(unittest.TestCase):
    def setUp(self):
        self.ends = []
        self.slot = page.Slot(bytearray(4 * page.WORDS), 0)
        self.steps = Steps(self.slot, lambda: self.ends.append(self.steps.count))
        self.loader, self.back = Mark(self.steps.data_begins), Mark()
        self.steps.bind_data(self.loader)
        self.steps.bind(self.back, "begin", page.BACKWARD)
        self.inside = False
        self.steps.is_within_backward = lambda: self.inside

    def phase(self):
        return self.slot.words[page.PHASE]

    def data(self):
        self.loader.begin()
        self.loader.end()

    def backward(self):
        self.back.begin()
        self.back.end()

    def step(self, optimizer):
        self.steps.optimizer_begins()
        self.steps.optimizer_ends(optimizer)

    def test_a_plain_loop_has_its_phases_and_ends_a_step_when_it_waits_for_data(self):
        optimizer, seen = Optimizer(), []
        for _ in range(3):
            self.loader.begin()
            seen.append(self.phase())
            self.loader.end()
            seen.append(self.phase())
            self.backward()
            seen.append(self.phase())
            self.steps.optimizer_begins()
            seen.append(self.phase())
            self.steps.optimizer_ends(optimizer)
        self.loader.begin()
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
        self.assertEqual(self.steps.count, 4)
        self.assertEqual(self.ends, [1, 2, 3, 4])

    def test_an_optimizer_that_calls_itself_makes_one_step(self):
        optimizer = Optimizer()
        for _ in range(2):
            self.steps.optimizer_begins()
            self.steps.optimizer_begins()
            self.steps.optimizer_ends(optimizer)
            self.steps.optimizer_ends(optimizer)
        self.assertEqual(self.steps.count, 2)

    def test_optimizers_within_backward_end_no_step_there(self):
        optimizers = [Optimizer(), Optimizer(), Optimizer()]
        for _ in range(2):
            self.data()
            self.back.begin()
            self.inside = True
            for optimizer in optimizers:
                self.step(optimizer)
            self.inside = False
        self.data()
        self.assertEqual((self.steps.count, self.ends), (2, [1, 2]))

    def test_without_a_loader_optimizers_within_backward_end_no_step_there(self):
        optimizers = [Optimizer(), Optimizer()]
        for number in (1, 2):
            self.inside = True
            for optimizer in optimizers:
                self.step(optimizer)
            self.inside = False
            self.assertEqual(self.ends, [1][: number - 1])
            self.steps.settle()
        self.assertEqual(self.steps.count, 2)

    def test_without_a_loader_a_step_ends_with_its_optimizer(self):
        optimizer = Optimizer()
        for _ in range(2):
            self.backward()
            self.step(optimizer)
        self.assertEqual(self.ends, [1, 2])
        self.assertEqual(self.phase(), page.FORWARD)

    def test_backward_within_a_step_is_part_of_it(self):
        optimizer = Optimizer()
        for _ in range(2):
            self.data()
            self.steps.optimizer_begins()
            self.backward()
            self.steps.optimizer_ends(optimizer)
        self.data()
        self.assertEqual((self.steps.count, self.ends), (2, [1, 2]))

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
        self.back.begin()  # and runs out of memory
        self.data()
        self.assertEqual(self.phase(), page.FORWARD)
        self.steps.optimizer_begins()  # and fails
        self.loader.begin()
        self.assertEqual(self.phase(), page.DATA)
        self.loader.end()
        self.step(optimizer)
        self.assertEqual(self.steps.count, 1)

    def test_evaluation_is_told_from_training_from_its_second_batch_on(self):
        optimizer = Optimizer()
        phases = []
        for learns in (True, True, False, False, False, True, True):
            self.data()
            phases.append(self.phase())
            if learns:
                self.backward()
                self.step(optimizer)
        train, look = page.FORWARD, page.EVALUATION
        self.assertEqual(phases, [train, train, train, look, look, look, train])

    def test_another_thread_that_loads_data_ends_no_step(self):
        self.data()
        self.step(Optimizer())
        thread = threading.Thread(target=self.loader.begin)
        thread.start()
        thread.join()
        self.assertEqual(self.ends, [])

    def test_what_is_not_due_is_not_attended_to_until_it_is_asked_for(self):
        optimizer = Optimizer()
        self.steps.due = 10
        for number in range(4):
            self.data()
            if number == 2:
                self.slot.words[page.SAVE_ASKED] = 1
            self.step(optimizer)
        self.assertEqual(self.ends, [3])

    def test_while_it_rests_steps_are_counted_and_a_request_wakes_it(self):
        optimizer, woken = Optimizer(), []
        self.data()
        self.steps.due = 100

        def wake():
            woken.append(self.steps.count)
            self.steps.wakes = None

        self.steps.wakes = wake
        for number in range(5):
            self.steps.optimizer_ends(optimizer)
        self.assertEqual((self.steps.count, self.phase(), woken), (5, page.FORWARD, []))
        self.slot.words[page.STOP_ASKED] = 1
        self.steps.optimizer_ends(optimizer)
        self.assertEqual((woken, self.ends), ([6], []))
        self.data()
        self.assertEqual(self.ends, [6])

    def test_an_error_of_ours_ends_the_counting_and_nothing_else(self):
        self.steps.looks_due, self.steps.looks = 2, lambda optimizer: 1 / 0
        optimizer = Optimizer()
        for _ in range(4):
            self.step(optimizer)
        self.assertEqual(self.steps.count, 2)

    def test_another_slot_is_written_to_from_now_on(self):
        other = page.Slot(bytearray(4 * page.WORDS), 0)
        self.steps.write_to(other)
        self.backward()
        self.assertEqual((self.phase(), other.words[page.PHASE]), (page.NOTHING, page.BACKWARD))

    def test_an_optimizer_that_is_gone_is_forgotten(self):
        optimizer = Optimizer()
        self.step(optimizer)
        self.assertEqual(self.steps.optimizers(), [optimizer])
        del optimizer
        gc.collect()
        self.assertEqual(self.steps.optimizers(), [])


if __name__ == "__main__":
    unittest.main()
