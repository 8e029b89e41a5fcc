"""This process, if it trains: what it says to the guard, and does when it is asked."""

import os
import platform
import signal
import sys
import threading
import time

from .. import MemoryPressure
from . import events, holders, hooks, landing, oom, page, report, stacks
from .steps import Steps

# Harmless to a process that does not expect it.
SIGNAL = signal.SIGURG
# Seconds between two looks at whether something is due.
PACE = 0.1
# The modules that change what is trained.
OPTIMIZERS = ("torch.optim.", "keras.src.optimizers.")
# Exceptions that are told of, at most.
MOST_ERRORS = 20

events.passing = MemoryPressure
_trainer = None
_called_later = []  # type: list


class CannotSave(Exception):
    """Why not, for the person."""


def trainer():
    """Of this process; there is one from the first framework on."""
    global _trainer
    if _trainer is None:
        _trainer = Trainer()
    return _trainer


def _nothing_to_save(frame):
    raise CannotSave("nothing is known to be trained")


class Trainer:
    def __init__(self):
        # Not in the page: most processes that import a framework do not train.
        self._take(page.Slot(bytearray(4 * page.WORDS), 0))
        self.steps = Steps(self._slot, self._step_is_over)
        self._is_known = self._is_listening = False
        # The script's own handler for our signal.
        self._theirs = None
        self._offers_stacks = None
        self._looked_for = 0
        # Seconds that a step takes; a guess before the first. When it was last learnt, and at which step.
        self.step_time = 1.0
        # Of a framework: seconds until something is due again, at this time and with steps so long.
        self.rhythm = None
        self._paced = time.monotonic(), 0
        # Called with a frame of the script, it saves the run and says where.
        self.save = _nothing_to_save
        self._holders = holders.Watch()
        self._errors, self._last = 0, None
        os.register_at_fork(after_in_child=self._is_forked)
        self._sees_all = events.watch_errors(self._raised)
        self._hook_uncaught()
        if not _is_a_worker():
            self._claim()

    def trains(self, framework, version, device, dtype, batch):
        """Says so, once for each framework."""
        self.steps.trains_here()
        self._claim()
        if batch:
            self._words[page.BATCH] = batch
        report.tell(
            "hello", pid=os.getpid(), framework=framework, version=str(version), device=device,
            dtype=dtype, batch=batch, python=platform.python_version(), shim=report.VERSION,
        )

    def _take(self, slot):
        self._slot, self._words = slot, slot.words

    def _claim(self, shares=False):
        if self._is_known:
            return
        self._is_known = True
        slot = page.claim()
        if slot is not None:
            self._take(slot)
            self.steps.write_to(slot)
            self._listen(shares)

    def _is_forked(self):
        """A child that trains as well says so itself; most do not."""
        self._offers_stacks = None
        self.leave()

    def join(self):
        """There is a page now. False where we cannot be told anything by signal."""
        self._is_known = False
        self._claim(shares=True)
        return self._is_listening or threading.current_thread() is not threading.main_thread()

    def leave(self):
        """There is none any more."""
        self._is_known = False
        self._take(page.Slot(bytearray(4 * page.WORDS), 0))
        self.steps.write_to(self._slot)

    def is_in_need(self):
        """The guard is worried about memory."""
        return self._words[page.RUNG] >= holders.WATCH_RUNG

    def forget(self):
        """What was asked for is about something that is over."""
        self._words[page.STOP_ANSWERED] = self._words[page.STOP_ASKED]

    # At the end of a step nothing is half done.

    def _step_is_over(self):
        """When something is asked for, or it is due."""
        self._keep_pace()
        words = self._words
        if self.is_asked_to_save() and not hooks.saves_itself:
            self._save(words[page.SAVE_ASKED])
        if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
            self._stop(sys._getframe(1))
        self._holders.step(self.steps.count, words[page.RUNG])

    def _keep_pace(self):
        now, count = time.monotonic(), self.steps.count
        then, before = self._paced
        if count > before:
            self._paced = now, count
            self.step_time = (now - then) / (count - before)
            seconds = self.rhythm(now, self.step_time) if self.rhythm else PACE
            self.steps.due = count + max(1, int(seconds / max(self.step_time, 1e-6)))

    # By a framework itself, when it comes to it.

    def is_asked_to_save(self):
        return self._words[page.SAVE_ASKED] != self._words[page.SAVE_ANSWERED]

    def saving_begins(self):
        self.steps.saving_begins()
        self._saving_since = time.monotonic()

    def saving_ends(self, path):
        """None: it could not."""
        asked, step = self._words[page.SAVE_ASKED], self.steps.count
        took = time.monotonic() - self._saving_since
        with report.safely("saving"):
            if path is None:
                report.tell("not-saved", step=step, why="the framework did not save")
            else:
                report.tell("saved", step=step, seconds=round(took, 3), path=os.path.abspath(path), by="framework")
                self._slot.longs[page.SAVED_STEP // 2] = step
        self._answer(asked, took, asked if path is None else 0)

    def _save(self, asked, frame=None):
        self.steps.saving_begins()
        began, step = time.monotonic(), self.steps.count
        failed = asked
        with report.safely("saving"):
            try:
                saved = self.save(frame or sys._getframe(1))
            except CannotSave as reason:
                report.tell("not-saved", step=step, why=str(reason))
            else:
                report.tell("saved", step=step, seconds=round(time.monotonic() - began, 3), **saved)
                self._slot.longs[page.SAVED_STEP // 2] = step
                failed = 0
        self._answer(asked, time.monotonic() - began, failed)

    def _answer(self, asked, seconds, failed):
        self._words[page.SAVE_MS] = int(1000 * seconds)
        self._words[page.SAVE_FAILED] = failed
        self._words[page.SAVE_ANSWERED] = asked
        self.steps.saving_ends()

    def _stop(self, frame):
        # The last look is the one that tells most.
        self._holders.look(self.steps.count, frame)
        self._words[page.STOP_ANSWERED] = self._words[page.STOP_ASKED]
        raise MemoryPressure(hooks.ending)

    # By signal, where steps are not seen or do not end.

    def _listen(self, shares):
        """Only where the script has no use for the signal itself; or, where it asked for the guard, besides it."""
        if threading.current_thread() is threading.main_thread():
            self._hear(shares)
        elif not self._is_listening:
            # Handlers are set by the main thread only.
            _in_the_main_thread(lambda: self._hear(shares))
        if self._offers_stacks is None:
            self._offers_stacks = False
            with report.safely("offering stacks"):
                self._offers_stacks = stacks.offer()
        self._say_what_is_heard()

    def _hear(self, shares):
        before = signal.getsignal(SIGNAL)
        self._is_listening = before == self._is_told
        # One that is not Python's is None.
        if not self._is_listening and (before is signal.SIG_DFL or shares and before is not None):
            self._theirs = before if callable(before) else None
            signal.signal(SIGNAL, self._is_told)
            # Calls of the script that wait go on waiting.
            signal.siginterrupt(SIGNAL, False)
            self._is_listening = True
        self._say_what_is_heard()

    def _say_what_is_heard(self):
        stacks_too = page.SHOWS_STACKS if self._offers_stacks else 0
        self._words[page.LISTENS] = page.HEARS * self._is_listening + stacks_too

    def _is_told(self, number, frame):
        words = self._words
        asked = words[page.LOOK_ASKED]
        is_for_us = asked != self._looked_for or words[page.STOP_ASKED] != words[page.STOP_ANSWERED]
        if asked != self._looked_for:
            self._looked_for = asked
            self._holders.step(self.steps.count, words[page.RUNG], frame)
        is_asked = words[page.STOP_ASKED] != words[page.STOP_ANSWERED]
        if is_asked and not self.steps.is_saving() and hooks.may_stop(frame):
            self._stop(frame)
        theirs = self._theirs
        if theirs is not None and not is_for_us:
            # It may call us in its turn.
            self._theirs = None
            try:
                theirs(number, frame)
            finally:
                self._theirs = theirs

    # Errors.

    def _hook_uncaught(self):
        """What ends the script is told, where it was not as it was raised; and the run is saved: what it has
        learnt is all there, but for the step that failed."""
        before = sys.excepthook

        def excepthook(kind, error, trace):
            with report.safely("an exception"):
                self._is_ended_by(error, trace)
            before(kind, error, trace)

        sys.excepthook = excepthook

    def _is_ended_by(self, error, trace):
        if not oom.is_out_of_memory(error):
            return
        landing.open_up()
        frame = holders.innermost(trace)
        if not self._sees_all:
            self._tell(error, frame)
        is_newer = self.steps.count > self._slot.longs[page.SAVED_STEP // 2]
        # An optimizer that failed has left its model between two steps.
        is_whole = not holders.passes_through(trace, OPTIMIZERS)
        if is_newer and is_whole and not self.steps.is_saving():
            self._save(self._words[page.SAVE_ASKED], frame)

    def _raised(self, error):
        if not oom.is_out_of_memory(error):
            return
        landing.open_up()
        # Raised again on its way out, it is still the same. It is not kept: it holds all that failed.
        mark = id(error), self.steps.count
        if mark != self._last:
            self._last = mark
            self._tell(error, sys._getframe(2))

    def _tell(self, error, frame):
        is_ours = isinstance(error, MemoryPressure)
        if is_ours or not (oom.is_out_of_memory(error) or oom.may_be_out_of_memory(error)):
            return
        if self._errors >= MOST_ERRORS:
            return
        self._errors += 1
        report.tell(
            "out-of-memory", type=type(error).__name__, message=str(error)[:500],
            step=self.steps.count, **holders.place_of(frame),
        )
        self._holders.look(self.steps.count, frame)


def _in_the_main_thread(do):
    """Has it done as soon as that thread runs code of Python again."""
    import ctypes

    def call(_):
        with report.safely("listening"):
            do()
        return 0

    later = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
    # For ever: it is not known when it is called, and nobody else keeps it until then.
    _called_later.append(later)
    ctypes.pythonapi.Py_AddPendingCall(later, None)


def _is_a_worker():
    """Started by multiprocessing to do a part of another process's work: it may train, or not."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None:
        return False
    is_starting = getattr(processes.current_process(), "_inheriting", False)
    return is_starting or processes.parent_process() is not None
