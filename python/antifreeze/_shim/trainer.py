"""The training process as the guard sees it: what it reports, and how it serves requests to save and to stop."""

import os
import platform
import signal
import sys
import threading
import time

from .. import MemoryPressure
from . import (
    call_hooks, edits, emergency_limit, event_log, holders, notebook_cells, oom, page, registry, stacks,
)
from .steps import Steps

# A process without a handler ignores it.
SIGNAL = signal.SIGURG
# A run that was asked to stop must save within this time. The guard's `stop_deadline_s` leaves a little more.
STOP_DEADLINE_SECONDS = 8.0
# Time between two checks for due work.
CHECK_INTERVAL_SECONDS = 0.1
# Beginnings of the names of modules whose code changes parameters.
OPTIMIZER_MODULES = ("torch.optim.", "keras.src.optimizers.")
# Out-of-memory errors that are reported at most.
MAX_REPORTED_ERRORS = 20

call_hooks.propagated = MemoryPressure
_trainer = None
_pending_calls = []  # type: list


class CannotSave(Exception):
    """The message says why the run cannot be saved."""


def get_trainer():
    """Returns the `Trainer` of this process, and creates it with the first framework."""
    global _trainer
    if _trainer is None:
        _trainer = Trainer()
    return _trainer


def _save_by_script(frame):
    """Saves by `on_checkpoint` alone, as long as no framework has shown what is trained."""
    from .save_path import call_on_checkpoint

    saved = call_on_checkpoint()
    if saved is None:
        raise CannotSave("antifreeze has not detected a training, and the script has no `on_checkpoint` function")
    return saved


class Trainer:
    def __init__(self):
        # A slot outside of the page: most processes that import a framework do not train.
        self._use_slot(page.Slot(bytearray(4 * page.WORDS), 0))
        self.steps = Steps(self._slot, self._on_step_end)
        self._has_claimed = self._is_listening = False
        # The script's own handler for SIGURG.
        self._script_handler = None
        self._shows_stacks = None
        self._look_answered = 0
        # Seconds per step; a guess before the first step.
        self.step_time = 1.0
        # Set by a framework: (time, seconds per step) → seconds until the next check.
        self.next_check_delay = None
        # Time and step of the last check.
        self._last_check = time.monotonic(), 0
        # Takes a frame of the script, saves the run, and returns the fields of a `saved` event.
        self.save = _save_by_script
        self._holder_watch = holders.HolderWatch()
        self._errors, self._last_error = 0, None
        os.register_at_fork(after_in_child=self._after_fork)
        self._sees_every_raise = call_hooks.hook_raises(self._on_raise)
        self._install_excepthook()
        if not _is_worker_process():
            self._claim_slot()

    def report_framework(self, framework, version, device, dtype, batch):
        """Called when a framework begins to train in this process."""
        self.steps.set_training_thread()
        self._claim_slot()
        if batch:
            self._words[page.BATCH] = batch
        event_log.log_event(
            "hello", pid=os.getpid(), framework=framework, version=str(version), device=device,
            dtype=dtype, batch=batch, python=platform.python_version(), shim=event_log.VERSION,
        )

    def pipeline_begins(self, dataset=None):
        """Called before a tf.data pipeline is read."""
        self._holder_watch.pipeline_begins(dataset, sys._getframe(1))

    def _use_slot(self, slot):
        self._slot, self._words = slot, slot.words

    def _claim_slot(self, shares=False):
        if self._has_claimed:
            return
        self._has_claimed = True
        slot = page.claim_slot()
        if slot is not None:
            self._use_slot(slot)
            self.steps.use_slot(slot)
            self._install_handlers(shares)

    def _after_fork(self):
        """A forked child gets no slot until it trains itself; most do not."""
        self._shows_stacks = None
        self.detach_from_page()

    def attach_to_page(self):
        """Called when a page exists. Returns False if the signal handler could not be installed."""
        self._has_claimed = False
        self._claim_slot(shares=True)
        return self._is_listening or threading.current_thread() is not threading.main_thread()

    def detach_from_page(self):
        """Called when the page no longer exists."""
        self._has_claimed = False
        self._use_slot(page.Slot(bytearray(4 * page.WORDS), 0))
        self.steps.use_slot(self._slot)

    def is_memory_short(self):
        """Whether the guard has raised its ladder above the ground."""
        return self._words[page.RUNG] >= holders.WATCH_RUNG

    def dismiss_requests(self):
        """Answers a request to stop that is about something that is over."""
        self._words[page.STOP_ANSWERED] = self._words[page.STOP_ASKED]

    # At the end of a step the model is consistent.

    def _on_step_end(self):
        """Called at the end of a step if there is a request or a check is due."""
        self._schedule_next_check()
        words = self._words
        if self.is_request_pending():
            owner = registry.checkpoint_owner
            owner = owner if owner is not None and owner.is_running() else None
            # A framework's callback knows itself when the framework's counters match the model.
            if owner is None or owner.saves_at_step_end:
                self.serve_requests(sys._getframe(1), None if owner is None else owner.save)
        self._holder_watch.sample_if_due(self.steps.count, words[page.RUNG])

    def serve_requests(self, frame, save=None):
        """Saves and stops the run if the guard requests it. Called where the model is consistent."""
        words = self._words
        if self.is_save_requested():
            self._save(words[page.SAVE_ASKED], frame, save)
        if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
            if self._has_time_to_save():
                self.save_before_exit(frame, save)
            if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
                self._stop(frame)

    def _has_time_to_save(self):
        """Whether a save is likely to finish before the guard kills the run, judged by the duration of the last save.
        The request may be as old as the last step."""
        words = self._words
        if words[page.SAVE_FAILED] or registry.checkpoint_owner is not None and _is_one_of_several_ranks():
            return False
        return words[page.SAVE_MS] / 1000 < STOP_DEADLINE_SECONDS - self.step_time

    def _schedule_next_check(self):
        now, count = time.monotonic(), self.steps.count
        then, before = self._last_check
        if count > before:
            self._last_check = now, count
            self.step_time = (now - then) / (count - before)
            seconds = self.next_check_delay(now, self.step_time) if self.next_check_delay else CHECK_INTERVAL_SECONDS
            self.steps.due = count + max(1, int(seconds / max(self.step_time, 1e-6)))

    # Called by the frameworks' callbacks.

    def is_save_requested(self):
        return self._words[page.SAVE_ASKED] != self._words[page.SAVE_ANSWERED]

    def is_request_pending(self):
        """Whether the guard requests a save or a stop."""
        return self.is_save_requested() or self._words[page.STOP_ASKED] != self._words[page.STOP_ANSWERED]

    def save_now(self, frame, save):
        """Saves because the guard requested it from this process or another rank: ranks save together."""
        self._save(self._words[page.SAVE_ASKED], frame, save)

    def saving_begins(self):
        self.steps.saving_begins()
        self._saving_since = time.monotonic()

    def saving_ends(self, saved, why="the framework did not save"):
        """`saved` is what `save` returned; None if the framework could not save."""
        asked, step = self._words[page.SAVE_ASKED], self.steps.count
        took = time.monotonic() - self._saving_since
        with event_log.suppress_faults("saving"):
            if saved is None:
                event_log.log_event("not-saved", step=step, why=why)
            else:
                self._record_save(step, took, saved)
        self._answer_save(asked, took, asked if saved is None else 0)

    def _save(self, asked, frame, save=None):
        self.steps.saving_begins()
        began, step = time.monotonic(), self.steps.count
        failed = asked
        with event_log.suppress_faults("saving"):
            try:
                saved = (save or self.save)(frame)
            except CannotSave as reason:
                event_log.log_event("not-saved", step=step, why=str(reason))
            except Exception as error:
                # A full disk or too little memory is no fault of the shim.
                if not isinstance(error, OSError) and not oom.is_out_of_memory(error):
                    event_log.log_event("not-saved", step=step, why=f"{type(error).__name__}: {error}"[:300])
                    raise
                event_log.log_event("not-saved", step=step, why=str(error)[:300] or "out of memory while saving")
            else:
                self._record_save(step, time.monotonic() - began, saved)
                failed = 0
        self._answer_save(asked, time.monotonic() - began, failed)

    def _record_save(self, step, seconds, saved):
        event_log.log_event("saved", **{"step": step, "seconds": round(seconds, 3), **saved})
        self._slot.longs[page.SAVED_STEP // 2] = step

    def _answer_save(self, asked, seconds, failed):
        self._words[page.SAVE_MS] = int(1000 * seconds)
        self._words[page.SAVE_FAILED] = failed
        self._words[page.SAVE_ANSWERED] = asked
        self.steps.saving_ends()

    def _stop(self, frame):
        # The last sample shows most.
        self._holder_watch.take_sample(self.steps.count, frame)
        self._words[page.STOP_ANSWERED] = self._words[page.STOP_ASKED]
        raise MemoryPressure(registry.stop_message)

    # Requests by signal, for loops whose steps are not detected or do not end.

    def _install_handlers(self, shares):
        """Installs the handlers unless the script uses the signals itself. With `shares`, because the script asked for
        the guard, the script's handler for SIGURG is called too."""
        if threading.current_thread() is threading.main_thread():
            self._install_signal_handler(shares)
        elif not self._is_listening:
            # Only the main thread can set handlers.
            _run_in_main_thread(lambda: self._install_signal_handler(shares))
        if self._shows_stacks is None:
            self._shows_stacks = False
            with event_log.suppress_faults("installing the handler for stacks"):
                self._shows_stacks = stacks.install_handler()
        self._publish_handlers()

    def _install_signal_handler(self, shares):
        before = signal.getsignal(SIGNAL)
        self._is_listening = before == self._on_signal
        # A handler that was not installed by Python is None.
        if not self._is_listening and (before is signal.SIG_DFL or shares and before is not None):
            self._script_handler = before if callable(before) else None
            signal.signal(SIGNAL, self._on_signal)
            # Interrupted system calls of the script are restarted.
            signal.siginterrupt(SIGNAL, False)
            self._is_listening = True
        self._publish_handlers()

    def _publish_handlers(self):
        stacks_too = page.SHOWS_STACKS if self._shows_stacks else 0
        self._words[page.LISTENS] = page.HEARS * self._is_listening + stacks_too

    def _on_signal(self, number, frame):
        words = self._words
        asked = words[page.LOOK_ASKED]
        is_for_us = asked != self._look_answered or words[page.STOP_ASKED] != words[page.STOP_ANSWERED]
        if asked != self._look_answered:
            self._look_answered = asked
            self._holder_watch.sample_if_due(self.steps.count, words[page.RUNG], frame)
        is_request_pending = words[page.STOP_ASKED] != words[page.STOP_ANSWERED]
        if is_request_pending and not self.steps.is_saving() and registry.may_interrupt(frame):
            self._stop(frame)
        theirs = self._script_handler
        if theirs is not None and not is_for_us:
            # The script's handler may call this one.
            self._script_handler = None
            try:
                theirs(number, frame)
            finally:
                self._script_handler = theirs

    # Errors.

    def _install_excepthook(self):
        """Reports an out-of-memory error that ends the script, and saves the run: only the failed step is lost."""
        before = sys.excepthook

        def excepthook(kind, error, trace):
            with event_log.suppress_faults("handling an uncaught exception"):
                self._handle_uncaught(error, trace)
                if isinstance(error, MemoryPressure):
                    _remove_own_frames(trace)
            before(kind, error, trace)

        sys.excepthook = excepthook

    def _handle_uncaught(self, error, trace):
        if not oom.is_out_of_memory(error):
            return
        emergency_limit.raise_limit()
        frame = holders.innermost_frame(trace)
        if not self._sees_every_raise:
            self._report_error(error, frame)
        owner = registry.checkpoint_owner
        owner = owner if owner is not None and owner.owns(trace) else None
        # If an optimizer failed, the model is between two steps.
        if owner is not None:
            is_consistent = owner.is_consistent(trace)
        else:
            is_consistent = not holders.is_raised_in(trace, OPTIMIZER_MODULES)
        if is_consistent:
            self.save_before_exit(frame, None if owner is None else owner.save)

    def save_before_exit(self, frame, save=None):
        """Saves before an error ends the training, unless the last complete step was saved already."""
        if self.steps.has_steps():
            is_newer = self.steps.count > self._slot.longs[page.SAVED_STEP // 2]
        else:
            is_newer = self._may_script_have_progress()
        if is_newer and not self.steps.is_saving():
            self._save(self._words[page.SAVE_ASKED], frame, save)

    def _may_script_have_progress(self):
        """Whether a script whose steps are not detected may have made some since it began, and can save them itself."""
        from .save_path import read_step_variable

        is_continued = os.environ.get("ANTIFREEZE_RESUME") or os.environ.get("ANTIFREEZE_RESUME_SAVES")
        if registry.on_checkpoint is None or is_continued and not registry.has_resumed:
            return False
        step = read_step_variable()
        if step is None:
            # These frameworks show their steps, so there are none.
            return not {"torch", "keras"} & {*sys.modules}
        return step > self.steps.count

    def record_script_save(self):
        """Called after the script saved without a request."""
        self._slot.longs[page.SAVED_STEP // 2] = self.steps.count

    def _on_raise(self, error):
        if not oom.is_out_of_memory(error):
            return
        emergency_limit.raise_limit()
        # An error that is raised again is reported once. Only its id is kept: the error holds everything that failed.
        key = id(error), self.steps.count
        if key != self._last_error:
            self._last_error = key
            self._report_error(error, sys._getframe(2))

    def _report_error(self, error, frame):
        is_ours = isinstance(error, MemoryPressure)
        if is_ours or not (oom.is_out_of_memory(error) or oom.may_be_out_of_memory(error)):
            return
        if self._errors >= MAX_REPORTED_ERRORS:
            return
        self._errors += 1
        with event_log.suppress_faults("reporting notebook cells"):
            notebook_cells.report_new_cells()
        event_log.log_event(
            "out-of-memory", type=type(error).__name__, message=str(error)[:500],
            step=self.steps.count, **holders.script_location(frame),
        )
        self._holder_watch.take_sample(self.steps.count, frame)
        with event_log.suppress_faults("searching edits for the batch"):
            _report_batch(holders.script_frames(frame))


def _report_batch(frames):
    """Reports what is known about the batch that did not fit and its model."""
    if not frames:
        return
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    nn = getattr(torch, "nn", None)
    module, model = getattr(nn, "Module", ()), getattr(keras, "Model", ())
    normed = False
    if nn is not None:
        kind = nn.modules.batchnorm._BatchNorm
        models = dict(holders.named_objects(frames[0], (nn.Module,))).values()
        normed = any(isinstance(part, kind) for whole in models for part in whole.modules())
    file, whole = edits.whole_set_edits(
        frames, lambda value: isinstance(value, module), lambda value: isinstance(value, model)
    )
    outermost = frames[-1].f_code.co_filename
    event_log.log_event(
        "batch", batch_norm=normed, file=file or outermost, size=edits.find_batch_size_line(outermost),
        edits=edits.with_current_text(file, whole) if file else [],
    )


def _remove_own_frames(trace):
    """Removes the frames of antifreeze from the end of a traceback, where `MemoryPressure` was raised."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(own):
            trace.tb_next = None
        trace = trace.tb_next


def _is_one_of_several_ranks():
    """Ranks write a framework's checkpoint together, but each may be asked to stop at another step."""
    distributed = sys.modules.get("torch.distributed")
    is_initialized = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return is_initialized and distributed.get_world_size() > 1


def _run_in_main_thread(do):
    """Calls `do` as soon as the main thread runs Python code again."""
    import ctypes

    def call(_):
        with event_log.suppress_faults("installing the signal handler"):
            do()
        return 0

    later = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)
    # Kept forever, because it is unknown when it is called.
    _pending_calls.append(later)
    ctypes.pythonapi.Py_AddPendingCall(later, None)


def _is_worker_process():
    """Whether multiprocessing started this process, so that it may train or not."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is None:
        return False
    is_starting = getattr(processes.current_process(), "_inheriting", False)
    return is_starting or processes.parent_process() is not None
