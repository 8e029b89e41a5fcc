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

from . import events, hooks, report
from .iterations import MAX_STEPS, Iterations
from .page import (
    BACKWARD, DATA, EVALUATION, FORWARD, NOTHING, OPTIMIZER, PHASE, SAVE_ANSWERED, SAVE_ASKED, SAVING, STEPS,
    STOP_ANSWERED, STOP_ASKED,
)

_get_ident = threading.get_ident
_STEPS = STEPS // 2
# Seconds for which a request may wait for the end of an iteration.
ITERATION_PATIENCE = 2.0


class Steps:
    def __init__(self, slot, attend):
        """`attend` is called at the end of a step, when the guard asks for something or it is due."""
        self._attend = attend
        self._bound = []
        self.write_to(slot)
        # The thread that trains: the main one, unless another is seen to train first.
        self.thread = threading.main_thread().ident
        # Told by a framework: whether backward is under way.
        self.is_within_backward = bool
        # The phase after data has come, and what calls to say so.
        self._ground = FORWARD
        self._after_data = None
        self._has_loader = self._has_stepped = self._has_steps = False
        # By optimizer: how many steps it has made, those before this process began among them.
        self._made = {}
        # Of several optimizers that count; the first of them, by its id and how many steps it has made.
        self._iterations = None
        self._first = None
        self._waits_since = None
        # Steps that were made before this process began, and all.
        self._before = self.count = 0
        # The step at which `attend` is called even if nothing is asked for.
        self.due = 0
        # The step from which on a framework wants to look at the next one, and what it calls then.
        self.looks_due, self.looks = sys.maxsize, events.nothing
        # Set while only steps are counted: has the rest be looked at again.
        self.wakes = None
        # No optimizer is built upon another: each end of one is a step.
        self.is_plain = True
        self._is_well = True
        self._saves = 0
        self._phase_before_save = NOTHING

    # Marks: what names a phase, and no more.

    def bind(self, mark, event, phase):
        """Has an event of a mark (see `events`), its `begin` or `end`, name this phase."""
        self._bound.append((mark, event, phase))
        setattr(mark, event, functools.partial(self.words.__setitem__, PHASE, phase))

    def bind_data(self, mark):
        self._after_data = mark
        self.bind(mark, "end", self._ground)

    def unbind_data(self):
        """From now on, and for the call that is under way."""
        self.unbind(self._after_data, "end")
        self._after_data.end = events.nothing
        self._after_data = None

    def unbind(self, mark, event):
        self._bound = [one for one in self._bound if one[0] is not mark or one[1] != event]

    def write_to(self, slot):
        """Says from now on there what it is at."""
        self.words, self.longs = slot.words, slot.longs
        bound, self._bound = self._bound, []
        for mark, event, phase in bound:
            self.bind(mark, event, phase)

    # Events.

    def data_begins(self):
        if _get_ident() != self.thread:
            return
        words = self.words
        before = words[PHASE]
        words[PHASE] = DATA
        self._has_loader = True
        if self._has_stepped:
            self._ends()
        # A batch that nothing went back from was looked at, and not learnt from.
        ground = EVALUATION if before == FORWARD or before == EVALUATION else FORWARD
        if ground != self._ground and self._after_data is not None:
            self._ground = ground
            self.unbind(self._after_data, "end")
            self.bind(self._after_data, "end", ground)

    def optimizer_begins(self):
        self.words[PHASE] = OPTIMIZER

    def optimizer_ends(self, optimizer, *_):
        """It has done what it had to. Called by a framework as it is: no error of ours leaves it."""
        if not self._is_well:
            return
        try:
            if self.wakes is None:
                words = self.words
                phase = words[PHASE]
                if phase != OPTIMIZER and phase != BACKWARD:
                    # Another one, which it is built upon, has ended before.
                    self.is_plain = False
                    return
                words[PHASE] = NOTHING if self._has_loader else FORWARD
            made = self._made.get(id(optimizer)) or self._first_of(optimizer)
            made[0] = count = made[0] + 1
            if self._iterations is not None and made[2]:
                self._iterations.optimizer_ends(id(optimizer))
            if count > self.count:
                self.count = self.longs[_STEPS] = count
                if count >= self.looks_due:
                    self.looks(optimizer)
            self._has_stepped = True
            if self.wakes is not None:
                words = self.words
                if (
                    count < self.due
                    and words[SAVE_ASKED] == words[SAVE_ANSWERED]
                    and words[STOP_ASKED] == words[STOP_ANSWERED]
                ):
                    return
                self.wakes()
            if not self._has_loader and not self.is_within_backward():
                self._ends()
        except events.passing:
            raise
        except Exception as fault:
            # Once it has gone wrong, steps are counted no more.
            self._is_well = False
            report.fault("counting a step", fault)

    def _first_of(self, optimizer):
        number = id(optimizer)
        forget = lambda _: self._made.pop(number, None)
        self._has_steps = True
        counts = self._counts(optimizer)
        made = self._made[number] = [self._before, weakref.ref(optimizer, forget), counts]
        if counts and self._first is None:
            self._first = number, made
        elif counts and self._iterations is None:
            first, (alone, *_) = self._first
            self._iterations = Iterations(first, alone - self._before)
        return made

    def _counts(self, optimizer):
        """Whether iterations are made of its steps."""
        given = _optimizers_given()
        return not given or any(one is optimizer for one in given)

    def settle(self):
        """Before anything goes back again: without a loader, what was stepped within backward is over."""
        if self._has_stepped and not self._has_loader:
            self._ends()

    def batches_end(self, number):
        """So many batches of a loop that is not ours to look into."""
        self._has_steps = True
        self.count += number
        self.longs[_STEPS] = self.count
        self._ends()

    def evaluation_begins(self):
        self.words[PHASE] = EVALUATION

    def evaluation_ends(self):
        self.words[PHASE] = NOTHING

    def saving_begins(self):
        if self._saves == 0:
            self._phase_before_save = self.words[PHASE]
            self.words[PHASE] = SAVING
        self._saves += 1

    def saving_ends(self):
        self._saves -= 1
        if self._saves == 0:
            self.words[PHASE] = self._phase_before_save

    def _ends(self):
        self._has_stepped = False
        words = self.words
        if (
            self.count >= self.due
            or words[SAVE_ASKED] != words[SAVE_ANSWERED]
            or words[STOP_ASKED] != words[STOP_ANSWERED]
        ):
            if self._iterations is None or not self._waits_for_iteration():
                self._attend()

    def _waits_for_iteration(self):
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

    def trains_here(self):
        """In this thread; what others do is not looked at."""
        self.thread = _get_ident()

    def go_on_from(self, step):
        self._before = self.count = step

    def are_seen(self):
        """Whether a framework has shown any step of this process."""
        return self._has_steps

    def completed(self):
        """Iterations of the loop that are complete, those before this process began among them."""
        before, iterations = self._before, self._iterations
        if self.count - before <= MAX_STEPS and any(id(one) not in self._made for one in _optimizers_given()):
            # The one that has not stepped yet may be due in the first iteration.
            return before
        if iterations is None:
            return self.count
        least = min((made[0] for made in self._made.values() if made[2]), default=before)
        return before + iterations.alone + min(iterations.completed, least - before)

    def optimizers(self):
        """Those that have made a step, and are still there."""
        there = [made[1]() for made in self._made.values()]
        return [optimizer for optimizer in there if optimizer is not None]

    def is_saving(self):
        return self._saves > 0


def _optimizers_given():
    """Optimizers that the script gave to `antifreeze.resume`."""
    given = [reference() for reference in hooks.resumable.values()]
    return [thing for thing in given if hasattr(thing, "param_groups")]
