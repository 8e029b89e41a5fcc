"""What the training is at, and how far it has come, from when things begin and end.

How many steps were made is the most that any one optimizer has made, so that a GAN with two optimizers makes
one step a batch, and so does a model with an optimizer for each parameter. What an optimizer calls of
itself, as one that is built upon another does, is no step of its own.

Where several optimizers step in an iteration, each as often as it likes, the iterations that are complete are counted as
well (`completed`): a run is continued from there, so that nothing is skipped. They are those of the optimizers that the
script gives to `antifreeze.resume`, or of all if it gives none, and never more than any of these has made steps.

A step is over where nothing is half done: when the next batch is waited for; without a loader, when the
optimizer has ended, unless it runs within backward. Where the steps of an iteration are known, it is over with the last
of them.

This runs in every step, between computations that have taken all of the caches: it is the number of
functions and objects that counts, more than what they do. So what only names a phase is a call of the page
itself (`bind`), what is seldom needed is asked for by the number of steps (`due`), and the phase that stands
in the page is all that is remembered of it.

Where steps are so short that even this counts, the training is looked at now and then, and in between only
its steps are counted (`rests`).
"""

import functools
import sys
import threading
import time
import weakref

from . import call_hooks, event_log, registry
from .iterations import MAX_STEPS, Iterations
from .page import (
    BACKWARD, DATA, EVALUATION, FORWARD, UNKNOWN, OPTIMIZER, PHASE, SAVE_ANSWERED, SAVE_ASKED, SAVING, STEPS,
    STOP_ANSWERED, STOP_ASKED,
)

_get_ident = threading.get_ident
_STEPS = STEPS // 2
# Seconds for which a request may wait for the end of an iteration.
ITERATION_PATIENCE = 2.0


class Steps:
    def __init__(self, slot, on_step_end):
        """`on_step_end` is called at the end of a step, when the guard asks for something or it is due."""
        self._on_step_end = on_step_end
        self._bound = []
        self.use_slot(slot)
        # The thread that trains: the main one, unless another is seen to train first.
        self.thread = threading.main_thread().ident
        # Told by a framework: whether backward is under way.
        self.is_within_backward = bool
        # The phase after data has come, and what calls to say so.
        self._phase_after_data = FORWARD
        self._data_hook = None
        self._has_loader = self._has_stepped = self._has_steps = False
        # By optimizer: how many steps it has made, those before this process began among them.
        self._steps_by_optimizer = {}
        # Of several optimizers that count; the first of them, by its id and how many steps it has made.
        self._iterations = None
        self._first = None
        self._waits_since = None
        # Steps that were made before this process began, and all.
        self._steps_before = self.count = 0
        # The step at which `on_step_end` is called even if nothing is asked for.
        self.due = 0
        # The step from which on a framework wants to look at the next one, and what it calls then.
        self.inspect_due, self.inspect = sys.maxsize, call_hooks.do_nothing
        # Set while only steps are counted: has the rest be looked at again.
        self.on_wake = None
        # No optimizer is built upon another: each end of one is a step.
        self.has_plain_optimizers = True
        self._is_counting = True
        self._saves = 0
        self._phase_before_save = UNKNOWN

    # Marks: what names a phase, and no more.

    def bind_phase(self, mark, event, phase):
        """Has an event of a mark (see `events`), its `begin` or `end`, name this phase."""
        self._bound.append((mark, event, phase))
        setattr(mark, event, functools.partial(self.words.__setitem__, PHASE, phase))

    def bind_data(self, mark):
        self._data_hook = mark
        self.bind_phase(mark, "end", self._phase_after_data)

    def unbind_data(self):
        """From now on, and for the call that is under way."""
        self.unbind_phase(self._data_hook, "end")
        self._data_hook.end = call_hooks.do_nothing
        self._data_hook = None

    def unbind_phase(self, mark, event):
        self._bound = [one for one in self._bound if one[0] is not mark or one[1] != event]

    def use_slot(self, slot):
        """Says from now on there what it is at."""
        self.words, self.longs = slot.words, slot.longs
        bound, self._bound = self._bound, []
        for mark, event, phase in bound:
            self.bind_phase(mark, event, phase)

    # Events.

    def data_begins(self):
        if _get_ident() != self.thread:
            return
        words = self.words
        before = words[PHASE]
        words[PHASE] = DATA
        self._has_loader = True
        if self._has_stepped:
            self._end_step()
        # A batch that nothing went back from was looked at, and not learnt from.
        ground = EVALUATION if before == FORWARD or before == EVALUATION else FORWARD
        if ground != self._phase_after_data and self._data_hook is not None:
            self._phase_after_data = ground
            self.unbind_phase(self._data_hook, "end")
            self.bind_phase(self._data_hook, "end", ground)

    def optimizer_begins(self):
        self.words[PHASE] = OPTIMIZER

    def optimizer_ends(self, optimizer, *_):
        """It has done what it had to. Called by a framework as it is: no error of ours leaves it."""
        if not self._is_counting:
            return
        try:
            if self.on_wake is None:
                words = self.words
                phase = words[PHASE]
                if phase != OPTIMIZER and phase != BACKWARD:
                    # Another one, which it is built upon, has ended before.
                    self.has_plain_optimizers = False
                    return
                words[PHASE] = UNKNOWN if self._has_loader else FORWARD
            made = self._steps_by_optimizer.get(id(optimizer)) or self._add_optimizer(optimizer)
            made[0] = count = made[0] + 1
            if self._iterations is not None and made[2]:
                self._iterations.optimizer_ends(id(optimizer))
            if count > self.count:
                self.count = self.longs[_STEPS] = count
                if count >= self.inspect_due:
                    self.inspect(optimizer)
            self._has_stepped = True
            if self.on_wake is not None:
                words = self.words
                if (
                    count < self.due
                    and words[SAVE_ASKED] == words[SAVE_ANSWERED]
                    and words[STOP_ASKED] == words[STOP_ANSWERED]
                ):
                    return
                self.on_wake()
            if not self._has_loader and not self.is_within_backward():
                self._end_step()
        except call_hooks.propagated:
            raise
        except Exception as fault:
            # Once it has gone wrong, steps are counted no more.
            self._is_counting = False
            event_log.log_fault("counting a step", fault)

    def _add_optimizer(self, optimizer):
        number = id(optimizer)
        forget = lambda _: self._steps_by_optimizer.pop(number, None)
        self._has_steps = True
        counts = self._is_counted(optimizer)
        made = self._steps_by_optimizer[number] = [self._steps_before, weakref.ref(optimizer, forget), counts]
        if counts and self._first is None:
            self._first = number, made
        elif counts and self._iterations is None:
            first, (alone, *_) = self._first
            self._iterations = Iterations(first, alone - self._steps_before)
        return made

    def _is_counted(self, optimizer):
        """Whether iterations are made of its steps."""
        given = _given_optimizers()
        return not given or any(one is optimizer for one in given)

    def end_pending_step(self):
        """Before anything goes back again: without a loader, what was stepped within backward is over."""
        if self._has_stepped and not self._has_loader:
            self._end_step()

    def add_steps(self, number):
        """So many batches of a loop that is not ours to look into."""
        self._has_steps = True
        self.count += number
        self.longs[_STEPS] = self.count
        self._end_step()

    def evaluation_begins(self):
        self.words[PHASE] = EVALUATION

    def evaluation_ends(self):
        self.words[PHASE] = UNKNOWN

    def saving_begins(self):
        if self._saves == 0:
            self._phase_before_save = self.words[PHASE]
            self.words[PHASE] = SAVING
        self._saves += 1

    def saving_ends(self):
        self._saves -= 1
        if self._saves == 0:
            self.words[PHASE] = self._phase_before_save

    def _end_step(self):
        self._has_stepped = False
        words = self.words
        if (
            self.count >= self.due
            or words[SAVE_ASKED] != words[SAVE_ANSWERED]
            or words[STOP_ASKED] != words[STOP_ANSWERED]
        ):
            if self._iterations is None or not self._should_wait_for_iteration():
                self._on_step_end()

    def _should_wait_for_iteration(self):
        """Whether an iteration is under way that ends soon."""
        if not self._iterations.is_within():
            self._waits_since = None
            return False
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        is_soon = now - self._waits_since < ITERATION_PATIENCE
        if not is_soon:
            self._waits_since = None
        return is_soon

    # What is known.

    def set_training_thread(self):
        """In this thread; what others do is not looked at."""
        self.thread = _get_ident()

    def resume_from(self, step):
        self._steps_before = self.count = step

    def has_steps(self):
        """Whether a framework has shown any step of this process."""
        return self._has_steps

    def completed_iterations(self):
        """Iterations of the loop that are complete, those before this process began among them."""
        before, iterations = self._steps_before, self._iterations
        if self.count - before <= MAX_STEPS and any(id(one) not in self._steps_by_optimizer for one in _given_optimizers()):
            # The one that has not stepped yet may be due in the first iteration.
            return before
        if iterations is None:
            return self.count
        least = min((made[0] for made in self._steps_by_optimizer.values() if made[2]), default=before)
        return before + iterations.alone + min(iterations.completed, least - before)

    def optimizers(self):
        """Those that have made a step, and are still there."""
        there = [made[1]() for made in self._steps_by_optimizer.values()]
        return [optimizer for optimizer in there if optimizer is not None]

    def is_saving(self):
        return self._saves > 0


def _given_optimizers():
    """Optimizers that the script gave to `antifreeze.resume`."""
    given = [reference() for reference in registry.resumable.values()]
    return [thing for thing in given if hasattr(thing, "param_groups")]
