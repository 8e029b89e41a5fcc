"""This process as one that trains: what it says to the guard, and does when it is asked."""

import os
import platform
import signal
import sys
import threading
import time

from .. import MemoryPressure
from . import events, holders, oom, page, report
from .steps import Steps

# Harmless to a process that does not expect it.
STOP_SIGNAL = signal.SIGURG
# Exceptions that are told of, at most.
MOST_ERRORS = 20

events.passing = MemoryPressure


class Trainer:
    def __init__(self, framework, version, snapshot):
        """`snapshot(frame)` is what would be saved, seen from a frame of the script."""
        self._framework, self._version = framework, version
        self._snapshot = snapshot
        self._slot = page.claim() or page.Slot(bytearray(4 * page.WORDS), 0)
        self._pid = os.getpid()
        self._errors, self._last = 0, None
        self.steps = Steps(self._slot, self._step_is_over)
        self._holders = holders.Watch()
        self._words = self._slot.words
        os.register_at_fork(after_in_child=self._is_forked)
        if not events.watch_errors(self._raised):
            self._hook_uncaught()
        self._take_stop_signal()

    def say_hello(self, device, batch):
        events.trains_here()
        if batch:
            self._words[page.BATCH] = batch
        report.tell(
            "hello", pid=os.getpid(), framework=self._framework, version=str(self._version),
            device=device, batch=batch, python=platform.python_version(), shim=report.VERSION,
            command=list(getattr(sys, "orig_argv", [])),
        )

    def _is_forked(self):
        """A child that trains as well is another trainer; most do not."""
        self._slot = page.Slot(bytearray(4 * page.WORDS), 0)
        self._words = self._slot.words
        self.steps.write_to(self._slot)

    # At the end of a step nothing is half done.

    def _step_is_over(self):
        words = self._words
        if words[page.SAVE_ASKED] != words[page.SAVE_ANSWERED]:
            self._save(words[page.SAVE_ASKED])
        if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
            self._stop()
        self._holders.step(self.steps.count, words[page.RUNG])

    def _save(self, asked):
        self.steps.saving_begins()
        began = time.monotonic()
        try:
            with report.safely("saving"):
                saved = self._snapshot(sys._getframe(1)).save()
                report.tell("saved", seconds=round(time.monotonic() - began, 3), **saved)
                self._slot.longs[page.SAVED_STEP // 2] = self.steps.count
        finally:
            self._words[page.SAVE_MS] = int(1000 * (time.monotonic() - began))
            self._words[page.SAVE_ANSWERED] = asked
            self.steps.saving_ends()

    def _stop(self):
        self._words[page.STOP_ANSWERED] = self._words[page.STOP_ASKED]
        raise MemoryPressure(
            "antifreeze asks this run to end: memory is running out, and it would freeze the machine"
        )

    def _take_stop_signal(self):
        """For a step that never ends. Only where the script has no use for the signal itself."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(STOP_SIGNAL) is signal.SIG_DFL:
            signal.signal(STOP_SIGNAL, self._is_told_to_stop)

    def _is_told_to_stop(self, number, frame):
        words = self._words
        if words[page.STOP_ASKED] != words[page.STOP_ANSWERED] and not self.steps.is_saving():
            self._stop()

    # Errors.

    def _hook_uncaught(self):
        """Where exceptions are not told of as they are raised, those that end the script are."""
        before = sys.excepthook

        def excepthook(kind, error, trace):
            with report.safely("an exception"):
                self._tell(error, holders.innermost(trace))
            before(kind, error, trace)

        sys.excepthook = excepthook

    def _raised(self, error):
        if not oom.is_out_of_memory(error):
            return
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
