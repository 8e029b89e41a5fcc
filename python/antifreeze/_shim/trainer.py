"""This process, if it trains: what it says to the guard, and does when it is asked."""

import os
import platform
import signal
import sys
import threading
import time

from .. import MemoryPressure
from . import cells, edits, events, holders, hooks, landing, oom, page, report, stacks
from .steps import Steps

# Harmless to a process that does not expect it.
SIGNAL = signal.SIGURG
# Seconds within which a run that was asked to end has to have ended, and a little for the end itself: see `stop_deadline_s`
# in crates/guard/src/orders.rs.
END_DEADLINE = 8.0
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


def _save_by_script(frame):
    """What is trained is not known; the script may know it."""
    from .files import saved_by_script

    saved = saved_by_script()
    if saved is None:
        raise CannotSave("nothing is known to be trained")
    return saved


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
        self.save = _save_by_script
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

    def pipeline_begins(self, dataset=None):
        """A pipeline of tf.data is about to be read from."""
        self._holders.pipeline_begins(dataset, sys._getframe(1))

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
        if self.is_asked():
            owner = hooks.owner if hooks.owner is not None and hooks.owner.is_running() else None
            # A framework has counters of its own, and knows itself when they fit to its model.
            if owner is None or owner.saves_at_step_end:
                self.serve(sys._getframe(1), None if owner is None else owner.save)
        self._holders.step(self.steps.count, words[page.RUNG])

    def serve(self, frame, save=None):
        """Saves and ends the run if the guard asks for it. Called where nothing is half done."""
        words = self._words
        if self.is_asked_to_save():
            self._save(words[page.SAVE_ASKED], frame, save)
        if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
            if self._has_time_to_save():
                self.save_at_end(frame, save)
            if words[page.STOP_ASKED] != words[page.STOP_ANSWERED]:
                self._stop(frame)

    def _has_time_to_save(self):
        """Whether a save is likely to be complete before the guard kills a run that it has asked to end: as far as the last
        save tells. The request may be as old as the step that is over."""
        words = self._words
        if words[page.SAVE_FAILED] or hooks.owner is not None and _is_one_of_several_ranks():
            return False
        return words[page.SAVE_MS] / 1000 < END_DEADLINE - self.step_time

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

    def is_asked(self):
        """Whether the guard asks for a save, or for the run to end."""
        return self.is_asked_to_save() or self._words[page.STOP_ASKED] != self._words[page.STOP_ANSWERED]

    def save_now(self, frame, save):
        """Saves because the guard asks this process or another rank: ranks save together."""
        self._save(self._words[page.SAVE_ASKED], frame, save)

    def saving_begins(self):
        self.steps.saving_begins()
        self._saving_since = time.monotonic()

    def saving_ends(self, saved, why="the framework did not save"):
        """`saved` is what `save` returns; None where the framework could not save."""
        asked, step = self._words[page.SAVE_ASKED], self.steps.count
        took = time.monotonic() - self._saving_since
        with report.safely("saving"):
            if saved is None:
                report.tell("not-saved", step=step, why=why)
            else:
                self._is_saved(step, took, saved)
        self._answer(asked, took, asked if saved is None else 0)

    def _save(self, asked, frame, save=None):
        self.steps.saving_begins()
        began, step = time.monotonic(), self.steps.count
        failed = asked
        with report.safely("saving"):
            try:
                saved = (save or self.save)(frame)
            except CannotSave as reason:
                report.tell("not-saved", step=step, why=str(reason))
            except Exception as error:
                # A full disk and a lack of memory are no faults of antifreeze.
                if not isinstance(error, OSError) and not oom.is_out_of_memory(error):
                    report.tell("not-saved", step=step, why=f"{type(error).__name__}: {error}"[:300])
                    raise
                report.tell("not-saved", step=step, why=str(error)[:300] or "there was no memory for it")
            else:
                self._is_saved(step, time.monotonic() - began, saved)
                failed = 0
        self._answer(asked, time.monotonic() - began, failed)

    def _is_saved(self, step, seconds, saved):
        report.tell("saved", **{"step": step, "seconds": round(seconds, 3), **saved})
        self._slot.longs[page.SAVED_STEP // 2] = step

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
                if isinstance(error, MemoryPressure):
                    _cut_own_frames(trace)
            before(kind, error, trace)

        sys.excepthook = excepthook

    def _is_ended_by(self, error, trace):
        if not oom.is_out_of_memory(error):
            return
        landing.open_up()
        frame = holders.innermost(trace)
        if not self._sees_all:
            self._tell(error, frame)
        owner = hooks.owner if hooks.owner is not None and hooks.owner.owns(trace) else None
        # An optimizer that failed has left its model between two steps.
        is_whole = owner.is_whole(trace) if owner is not None else not holders.passes_through(trace, OPTIMIZERS)
        if is_whole:
            self.save_at_end(frame, None if owner is None else owner.save)

    def save_at_end(self, frame, save=None):
        """Saves before an error ends the training, unless the last complete step is saved already."""
        if self.steps.are_seen():
            is_newer = self.steps.count > self._slot.longs[page.SAVED_STEP // 2]
        else:
            is_newer = self._is_script_further()
        if is_newer and not self.steps.is_saving():
            self._save(self._words[page.SAVE_ASKED], frame, save)

    def _is_script_further(self):
        """Whether a script whose steps are not seen may have made some since it began, and can save them itself."""
        from .files import variable_step

        is_continued = os.environ.get("ANTIFREEZE_RESUME") or os.environ.get("ANTIFREEZE_RESUME_SAVES")
        if hooks.on_checkpoint is None or is_continued and not hooks.has_resumed:
            return False
        step = variable_step()
        if step is None:
            # These show their steps, so there are none.
            return not {"torch", "keras"} & {*sys.modules}
        return step > self.steps.count

    def is_saved_by_script(self):
        """By itself, without being asked to."""
        self._slot.longs[page.SAVED_STEP // 2] = self.steps.count

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
        with report.safely("naming cells"):
            cells.tell()
        report.tell(
            "out-of-memory", type=type(error).__name__, message=str(error)[:500],
            step=self.steps.count, **holders.place_of(frame),
        )
        self._holders.look(self.steps.count, frame)
        with report.safely("looking for changes to the batch"):
            _tell_of_batch(holders.frames_of_script(frame))


def _tell_of_batch(frames):
    """What is known of the batch that did not fit, and of the model that it is for."""
    if not frames:
        return
    torch, keras = sys.modules.get("torch"), sys.modules.get("keras")
    nn = getattr(torch, "nn", None)
    module, model = getattr(nn, "Module", ()), getattr(keras, "Model", ())
    normed = False
    if nn is not None:
        kind = nn.modules.batchnorm._BatchNorm
        models = dict(holders.named(frames[0], (nn.Module,))).values()
        normed = any(isinstance(part, kind) for whole in models for part in whole.modules())
    file, whole = edits.whole_set(
        frames, lambda value: isinstance(value, module), lambda value: isinstance(value, model)
    )
    outermost = frames[-1].f_code.co_filename
    report.tell(
        "batch", batch_norm=normed, file=file or outermost, size=edits.batch_size(outermost),
        edits=edits.with_text_before(file, whole) if file else [],
    )


def _cut_own_frames(trace):
    """Ends a traceback at the script's line, or the framework's: the request to end is raised further inside, by antifreeze."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(own):
            trace.tb_next = None
        trace = trace.tb_next


def _is_one_of_several_ranks():
    """A framework's own checkpoint is written by all ranks together; each of them may be asked to end at another step."""
    distributed = sys.modules.get("torch.distributed")
    is_spread = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return is_spread and distributed.get_world_size() > 1


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
