"""Steps and phases, from when things begin and end."""

import gc
import threading
import unittest
import weakref
from unittest import mock

import support  # noqa: F401, puts the package on sys.path
from antifreeze import MemoryPressure
from antifreeze._shim import event_log, page, registry, steps
from antifreeze._shim.call_hooks import CallHook
from antifreeze._shim.steps import Steps


class Optimizer:
    """Has an identity, and can be referred to weakly."""


class SafelyTest(unittest.TestCase):
    def test_an_error_of_ours_ends_there_and_a_request_to_end_does_not(self):
        with event_log.suppress_faults("a test"):
            raise ValueError("ours")
        with self.assertRaises(MemoryPressure), event_log.suppress_faults("a test"):
            raise MemoryPressure("asked to end")


class IterationsTest(unittest.TestCase):
    """Loops with several optimizers: each is a text of who steps, iterations apart."""

    def setUp(self):
        self.slot = page.Slot(bytearray(4 * page.WORDS), 0)
        self.addCleanup(registry.resumable.clear)

    def loop(self, text, given="", before=0):
        """After each step: iterations that are complete by the count, and those that truly are."""
        optimizers = {name: Optimizer() for name in sorted({*text} - {" "})}
        for optimizer in optimizers.values():
            optimizer.param_groups = []
        registry.resumable.clear()
        registry.resumable.update({name: weakref.ref(optimizers[name]) for name in given})
        self.ends = []
        self.steps = Steps(self.slot, lambda: self.ends.append(len(told)))
        self.steps.resume_from(before)
        told = []
        iterations = text.split()
        for number, iteration in enumerate(iterations):
            for position, name in enumerate(iteration):
                self.steps.optimizer_begins()
                self.steps.optimizer_ends(optimizers[name])
                told.append((self.steps.completed_iterations() - before, number + (position == len(iteration) - 1)))
        return told

    LOOPS = ("DDDDDG " * 6, "GDDDDD " * 6, "DG " * 9, "GD " * 9, "DDDGG " * 5, "ABC " * 5, "DDDDDDDDDG DDDG DG DDG DG DG ")

    def test_no_more_iterations_are_counted_than_are_complete(self):
        for text in (*self.LOOPS, "ABAC " * 6, "CCA " * 5):
            for before in (0, 48):
                for counted, complete in self.loop(text, given={*text} - {" "}, before=before):
                    self.assertLessEqual(counted, complete, text)

    def test_at_the_end_all_but_the_last_one_are_counted(self):
        for text in self.LOOPS:
            counted, complete = self.loop(text, given={*text} - {" "})[-1]
            self.assertIn(complete - counted, (0, 1), text)

    def test_what_is_asked_waits_for_the_last_step_of_the_iteration(self):
        self.slot.words[page.SAVE_ASKED] = 1
        for text, length in (("DDDDDG " * 6, 6), ("GD " * 6, 2)):
            self.loop(text)
            # The first iteration has to be seen, and the first step of the second ends it.
            later = [end + 1 for end in self.ends if end >= length]
            self.assertEqual(later, list(range(2 * length, 6 * length + 1, length)), text)

    def test_a_loop_that_does_not_do_what_it_did_is_not_waited_for(self):
        self.slot.words[page.SAVE_ASKED] = 1
        self.loop("DDG DG DDDDDDG")
        self.assertIn(len("DDGDGDD"), [end + 1 for end in self.ends])

    def test_an_iteration_that_takes_long_is_not_waited_for(self):
        self.slot.words[page.SAVE_ASKED] = 1
        with mock.patch.object(steps, "MAX_ITERATION_WAIT_SECONDS", 0.0):
            self.loop("DDDDDG " * 3)
        self.assertEqual(len(self.ends), 18)

    def test_an_optimizer_that_begins_late_takes_nothing_back(self):
        told = self.loop("G " * 300 + "GD " * 20, given="GD")
        self.assertEqual(told[199], (200, 200))
        counted, complete = told[-1]
        self.assertIn(complete - counted, (0, 1))

    def test_only_optimizers_that_are_given_count(self):
        counted, complete = self.loop("AAAAAB " * 4, given="A")[-1]
        self.assertEqual((counted, complete), (20, 4))


class StepsTest(unittest.TestCase):
    def setUp(self):
        self.ends = []
        self.slot = page.Slot(bytearray(4 * page.WORDS), 0)
        self.steps = Steps(self.slot, lambda: self.ends.append(self.steps.count))
        self.loader, self.back = CallHook(self.steps.data_begins), CallHook()
        self.steps.bind_data(self.loader)
        self.steps.bind_phase(self.back, "begin", page.BACKWARD)
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
            self.steps.end_pending_step()
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
            self.steps.on_wake = None

        self.steps.on_wake = wake
        for number in range(5):
            self.steps.optimizer_ends(optimizer)
        self.assertEqual((self.steps.count, self.phase(), woken), (5, page.FORWARD, []))
        self.slot.words[page.STOP_ASKED] = 1
        self.steps.optimizer_ends(optimizer)
        self.assertEqual((woken, self.ends), ([6], []))
        self.data()
        self.assertEqual(self.ends, [6])

    def test_an_error_of_ours_ends_the_counting_and_nothing_else(self):
        self.steps.inspect_due, self.steps.inspect = 2, lambda optimizer: 1 / 0
        optimizer = Optimizer()
        for _ in range(4):
            self.step(optimizer)
        self.assertEqual(self.steps.count, 2)

    def test_another_slot_is_written_to_from_now_on(self):
        other = page.Slot(bytearray(4 * page.WORDS), 0)
        self.steps.use_slot(other)
        self.backward()
        self.assertEqual((self.phase(), other.words[page.PHASE]), (page.UNKNOWN, page.BACKWARD))

    def test_an_optimizer_that_is_gone_is_forgotten(self):
        optimizer = Optimizer()
        self.step(optimizer)
        self.assertEqual(self.steps.optimizers(), [optimizer])
        del optimizer
        gc.collect()
        self.assertEqual(self.steps.optimizers(), [])


if __name__ == "__main__":
    unittest.main()
