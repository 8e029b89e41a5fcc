"""In a notebook: a cell for which there is no memory ends with an exception that says so, and the kernel lives.

What would kill the kernel is never done: no exception is raised while it is idle, or while a cell awaits. And
what the failed cell held is given back, although its traceback would keep it.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, List, Optional

from . import _attach
from ._memory import free_unused_memory, trim_heap
from ._shim import emergency_limit, event_log, holders, notebook_cells, oom, registry

# Names that are told, and what they hold at least.
MOST, LEAST = 3, 1_000_000
_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_shim", "")
_IPYTHON_S = ("In", "Out")
_HOLD_NOTHING = (types.ModuleType, types.FunctionType, types.MethodType, type)

_notebook: Optional[Notebook] = None


def load(shell: Any) -> None:
    """`%load_ext antifreeze`."""
    if not _attach.is_guarded():
        _attach.guard()
    hook(shell)


def hook(shell: Any) -> None:
    global _notebook
    if _notebook is None:
        _notebook = Notebook(shell)


def unhook() -> None:
    global _notebook
    if _notebook is not None:
        _notebook.leave()
        _notebook = None


class Notebook:
    def __init__(self, shell: Any) -> None:
        self._shell = shell
        # This is called in a cell, as a rule, which is under way already and may be any.
        self._is_in_cell = False
        self._has_told = False
        self._before = registry.may_interrupt, registry.stop_message
        registry.may_interrupt = self._may_stop
        registry.stop_message = "antifreeze ended this cell: it has almost used up its memory"
        with event_log.suppress_faults("naming cells"):
            notebook_cells.reset()
            notebook_cells.report_new_cells()
        shell.events.register("pre_run_cell", self._begins)
        shell.events.register("post_run_cell", self._ends)
        self._show, self._show_lines = shell.showtraceback, shell._showtraceback
        shell.showtraceback, shell._showtraceback = self._shows, self._shows_lines

    def leave(self) -> None:
        shell = self._shell
        registry.may_interrupt, registry.stop_message = self._before
        shell.events.unregister("pre_run_cell", self._begins)
        shell.events.unregister("post_run_cell", self._ends)
        # Unless somebody has put something of his own there since.
        if shell.showtraceback == self._shows:
            del shell.showtraceback
        if shell._showtraceback == self._shows_lines:
            del shell._showtraceback

    # When an exception may be raised.

    def _begins(self, info=None):
        from ._shim.trainer import get_trainer

        # What was asked of the cell before is not meant for this one.
        get_trainer().dismiss_requests()
        self._is_in_cell = True
        with event_log.suppress_faults("naming cells"):
            notebook_cells.report_running_cell(self._shell, getattr(info, "raw_cell", None))

    def _ends(self, result=None):
        from ._shim.trainer import get_trainer

        self._is_in_cell = False
        self._forget_results()
        if get_trainer().is_memory_short():
            trim_heap()

    def _forget_results(self):
        """`%reset -f out` lets go of all results but the last three, which IPython keeps once more to know its own."""
        names, hidden = self._shell.user_ns, self._shell.user_ns_hidden
        for name in ("_", "__", "___") if not names.get("_oh") else ():
            now = names.get(name)
            if isinstance(now, str) and not now and name in hidden:
                hidden[name] = now

    def _may_stop(self, frame):
        """Only where a cell's own code is at work: while it awaits something the kernel's own loop is, which an
        exception would end."""
        while self._is_in_cell and frame is not None:
            if frame.f_globals is self._shell.user_ns:
                return True
            frame = frame.f_back
        return False

    # What is said, and given back.

    def _shows(self, exc_tuple=None, *arguments, **named):
        error = (exc_tuple or sys.exc_info())[1]
        if not is_about_memory(error):
            return self._show(exc_tuple, *arguments, **named)
        emergency_limit.raise_limit()
        for one in _behind(error):
            _cut(one.__traceback__)
        self._has_told = False
        self._show(exc_tuple, *arguments, **named)
        if not self._has_told:
            # Groups of exceptions are shown in another way.
            release(error)
            print(*self._told(), sep="\n", file=sys.stderr)

    def _shows_lines(self, kind, error, lines):
        if is_about_memory(error):
            release(error)
            lines = [*lines, *self._told()]
            self._has_told = True
        return self._show_lines(kind, error, lines)

    def _told(self) -> List[str]:
        resident, may_use = holders.resident(), _attach.may_use()
        of = f" of the {shown(may_use)} it may use" if may_use else ""
        told = [
            "",
            "antifreeze: there was no memory left for this cell. The kernel and its variables are still here, with "
            f"{shown(resident)}{of}.",
        ]
        largest = self._largest()
        if largest:
            names = ", ".join(f"{name} ({shown(size)})" for name, size in largest)
            told.append(f"            Largest: {names}. What you do not need: del {largest[0][0]}")
        results = min(holders.estimate(self._shell.user_ns.get("Out"), 3), resident)
        if results >= max(LEAST, resident // 10):
            # IPython keeps them, under several names: to delete one of these gives nothing back.
            told.append(f"            Results that were shown are kept ({shown(results)}): %reset -f out")
        told.append("            Otherwise: smaller batches, data in parts. `antifreeze explain` tells more.")
        return told

    def _largest(self):
        """Names of the notebook, and about how much each holds."""
        held, most = [], holders.at_most()
        for name, value in list(self._shell.user_ns.items()):
            if name.startswith("_") or name in _IPYTHON_S or isinstance(value, _HOLD_NOTHING):
                continue
            size = holders.estimate(value, 2)
            held.append((min(size, most) if most else size, name))
        return [(name, size) for size, name in sorted(held, reverse=True)[:MOST] if size >= LEAST]


def is_about_memory(error: Optional[BaseException]) -> bool:
    """Itself, or what it was raised for."""
    return isinstance(error, BaseException) and any(map(oom.is_out_of_memory, _behind(error)))


def release(error: BaseException) -> None:
    """Lets go of what the functions that failed held. Their traceback stays, without the values."""
    for one in _behind(error):
        trace = one.__traceback__
        while trace is not None:
            _clear(trace.tb_frame)
            trace = trace.tb_next
    free_unused_memory()


def _behind(error):
    """It, and all that led to it."""
    todo, seen = [error], set()
    while todo:
        error = todo.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        several = getattr(error, "exceptions", ())
        todo += [error.__cause__, error.__context__, *(several if isinstance(several, (tuple, list)) else ())]


def _cut(trace):
    """Takes our own frames off the end: the cell's line is what matters."""
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(_OURS):
            trace.tb_next = None
        trace = trace.tb_next


def _clear(frame):
    try:
        frame.clear()
    except RuntimeError:
        # It still runs.
        return
    # Whoever has asked for its variables before, as the one who shows the traceback has, was given a copy, which
    # is brought up to date when it is asked for.
    if frame.f_locals is not frame.f_globals:
        frame.f_locals


def shown(size: int) -> str:
    for unit, bytes in (("GB", 1e9), ("MB", 1e6)):
        if size >= bytes:
            return f"{size / bytes:.3g} {unit}"
    return f"{size / 1e3:.0f} kB"
