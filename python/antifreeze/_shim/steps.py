"""Tracks the phase and counts the steps of the training, from the begin and end of the framework's calls.

The number of steps is the largest number that any one optimizer has made. So a GAN with two optimizers makes one step
per batch, and so does a model with an optimizer per parameter. A step that an optimizer calls on an inner optimizer
does not count.

If several optimizers step in an iteration, complete iterations are counted too (`completed_iterations`), because a run
must continue at the start of one. Only the optimizers that the script gives to `antifreeze.resume` count, or all if it
gives none. The result is never more than the smallest number of steps of these.

A step ends where the model is consistent: when the next batch is requested, or without a loader, when the optimizer
has finished outside of backward. If the steps of an iteration are known, a step ends with the last of them.

This code runs in every step, between computations that have evicted the caches, so the number of functions and objects
it touches matters more than what they do. A hook that only names a phase is therefore a bound call of the page itself
(`bind_phase`), rare work is triggered by the number of steps (`due`), and the only state is the phase in the page.

If steps are so short that even this counts, phases are observed from time to time and steps are only counted in
between (`on_wake`).
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
# How long a request may wait for the end of an iteration.
MAX_ITERATION_WAIT_SECONDS = 2.0


class Steps:
    def __init__(self, slot, on_step_end):
        """`on_step_end` is called at the end of a step if the guard requests something or the step is due."""
        self._on_step_end = on_step_end
        self._bound = []
        self.use_slot(slot)
        # The thread that trains: the main thread, unless another one trains first.
        self.thread = threading.main_thread().ident
        # Returns whether backward is running. The framework's module replaces it.
        self.is_within_backward = bool
        # The phase after a batch was delivered, and the hook that sets it.
        self._phase_after_data = FORWARD
        self._data_hook = None
        self._has_loader = self._has_stepped = self._has_steps = False
        # id of an optimizer → [steps including those before a resume, weak reference, whether it counts for
        # iterations].
        self._steps_by_optimizer = {}
        # Set once a second optimizer steps; `_first` is (id, entry) of the first one.
        self._iterations = None
        self._first = None
        self._waits_since = None
        # Steps before a resume, and all steps.
        self._steps_before = self.count = 0
        # The step at which `on_step_end` is called even without a request.
        self.due = 0
        # From step `inspect_due` on, `inspect(optimizer)` is called.
        self.inspect_due, self.inspect = sys.maxsize, call_hooks.do_nothing
        # Set while steps are only counted: resumes the observation of phases.
        self.on_wake = None
        # No optimizer wraps another, so each end of an optimizer's step is a step.
        self.has_plain_optimizers = True
        self._is_counting = True
        self._saves = 0
        self._phase_before_save = UNKNOWN

    # Hooks that only set the phase.

    def bind_phase(self, hook, event, phase):
        """Makes an event of a `CallHook`, `begin` or `end`, set this phase."""
        self._bound.append((hook, event, phase))
        setattr(hook, event, functools.partial(self.words.__setitem__, PHASE, phase))

    def bind_data(self, hook):
        self._data_hook = hook
        self.bind_phase(hook, "end", self._phase_after_data)

    def unbind_data(self):
        """Takes effect at once, also for the call that is running."""
        self.unbind_phase(self._data_hook, "end")
        self._data_hook.end = call_hooks.do_nothing
        self._data_hook = None

    def unbind_phase(self, hook, event):
        self._bound = [one for one in self._bound if one[0] is not hook or one[1] != event]

    def use_slot(self, slot):
        """Writes phase and steps to this slot from now on."""
        self.words, self.longs = slot.words, slot.longs
        bound, self._bound = self._bound, []
        for hook, event, phase in bound:
            self.bind_phase(hook, event, phase)

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
        # A batch without a backward was evaluation.
        phase = EVALUATION if before == FORWARD or before == EVALUATION else FORWARD
        if phase != self._phase_after_data and self._data_hook is not None:
            self._phase_after_data = phase
            self.unbind_phase(self._data_hook, "end")
            self.bind_phase(self._data_hook, "end", phase)

    def optimizer_begins(self):
        self.words[PHASE] = OPTIMIZER

    def optimizer_ends(self, optimizer, *_):
        """Called by the framework directly, so no exception of the shim may leave it."""
        if not self._is_counting:
            return
        try:
            if self.on_wake is None:
                words = self.words
                phase = words[PHASE]
                if phase != OPTIMIZER and phase != BACKWARD:
                    # An inner optimizer has ended before.
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
            # After an error, steps are no longer counted.
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
        """Whether the steps of this optimizer make up iterations."""
        given = _given_optimizers()
        return not given or any(one is optimizer for one in given)

    def end_pending_step(self):
        """Called before backward: without a loader, a step that an optimizer made within the last backward is over."""
        if self._has_stepped and not self._has_loader:
            self._end_step()

    def add_steps(self, number):
        """Counts batches of a framework's loop whose optimizer is not observed."""
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
        """Whether an iteration is running that ends soon."""
        if not self._iterations.is_within():
            self._waits_since = None
            return False
        now = time.monotonic()
        if self._waits_since is None:
            self._waits_since = now
        is_soon = now - self._waits_since < MAX_ITERATION_WAIT_SECONDS
        if not is_soon:
            self._waits_since = None
        return is_soon

    # Results.

    def set_training_thread(self):
        """Makes this thread the one that trains; other threads are ignored."""
        self.thread = _get_ident()

    def resume_from(self, step):
        self._steps_before = self.count = step

    def has_steps(self):
        """Whether any step of this process was detected."""
        return self._has_steps

    def completed_iterations(self):
        """Returns the complete iterations of the loop, including those before a resume."""
        before, iterations = self._steps_before, self._iterations
        made = self._steps_by_optimizer
        if self.count - before <= MAX_STEPS and any(id(one) not in made for one in _given_optimizers()):
            # An optimizer that has not stepped yet may be due in the first iteration.
            return before
        if iterations is None:
            return self.count
        least = min((made[0] for made in self._steps_by_optimizer.values() if made[2]), default=before)
        return before + iterations.alone + min(iterations.completed, least - before)

    def optimizers(self):
        """Returns the optimizers that have made a step and still exist."""
        there = [made[1]() for made in self._steps_by_optimizer.values()]
        return [optimizer for optimizer in there if optimizer is not None]

    def is_saving(self):
        return self._saves > 0


def _given_optimizers():
    """Returns the optimizers that the script gave to `antifreeze.resume`."""
    given = [reference() for reference in registry.resumable.values()]
    return [value for value in given if hasattr(value, "param_groups")]
