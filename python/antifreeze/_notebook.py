"""Notebooks: a cell that runs out of memory ends with an exception, and the kernel survives.

No exception is raised while the kernel is idle or while a cell awaits, because either would end the kernel. The memory
of the failed cell is freed, although its traceback refers to it.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, List, Optional

from . import _attach
from ._memory import free_unused_memory, trim_heap
from ._shim import emergency_limit, event_log, holders, notebook_cells, oom, registry

# Variables that the message names at most, and the bytes that each holds at least.
MAX_NAMES, MIN_BYTES = 3, 1_000_000
_SHIM_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_shim", "")
_IPYTHON_NAMES = ("In", "Out")
_NON_HOLDER_TYPES = (types.ModuleType, types.FunctionType, types.MethodType, type)

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
        # Usually this runs in a cell, but `pre_run_cell` was not called for it, so it counts as outside.
        self._is_in_cell = False
        self._has_shown_message = False
        self._before = registry.may_interrupt, registry.stop_message
        registry.may_interrupt = self._may_interrupt
        registry.stop_message = "antifreeze ended this cell: it has almost used up its memory"
        with event_log.suppress_faults("reporting notebook cells"):
            notebook_cells.reset()
            notebook_cells.report_new_cells()
        shell.events.register("pre_run_cell", self._on_cell_begin)
        shell.events.register("post_run_cell", self._on_cell_end)
        self._show, self._show_lines = shell.showtraceback, shell._showtraceback
        shell.showtraceback, shell._showtraceback = self._show_traceback, self._show_lines_patched

    def leave(self) -> None:
        shell = self._shell
        registry.may_interrupt, registry.stop_message = self._before
        shell.events.unregister("pre_run_cell", self._on_cell_begin)
        shell.events.unregister("post_run_cell", self._on_cell_end)
        # Not if something else has patched it since.
        if shell.showtraceback == self._show_traceback:
            del shell.showtraceback
        if shell._showtraceback == self._show_lines_patched:
            del shell._showtraceback

    # When an exception may be raised.

    def _on_cell_begin(self, info=None):
        from ._shim.trainer import get_trainer

        # A request that was meant for the previous cell is dismissed.
        get_trainer().dismiss_requests()
        self._is_in_cell = True
        with event_log.suppress_faults("reporting notebook cells"):
            notebook_cells.report_running_cell(self._shell, getattr(info, "raw_cell", None))

    def _on_cell_end(self, result=None):
        from ._shim.trainer import get_trainer

        self._is_in_cell = False
        self._forget_results()
        if get_trainer().is_memory_short():
            trim_heap()

    def _forget_results(self):
        """`%reset -f out` frees all results but the last three, because IPython keeps a second reference to those."""
        names, hidden = self._shell.user_ns, self._shell.user_ns_hidden
        for name in ("_", "__", "___") if not names.get("_oh") else ():
            now = names.get(name)
            if isinstance(now, str) and not now and name in hidden:
                hidden[name] = now

    def _may_interrupt(self, frame):
        """Whether the cell's own code is running. While a cell awaits, the kernel's event loop runs, and an exception
        would end it."""
        while self._is_in_cell and frame is not None:
            if frame.f_globals is self._shell.user_ns:
                return True
            frame = frame.f_back
        return False

    # Messages and freed memory.

    def _show_traceback(self, exc_tuple=None, *arguments, **named):
        error = (exc_tuple or sys.exc_info())[1]
        if not is_about_memory(error):
            return self._show(exc_tuple, *arguments, **named)
        emergency_limit.raise_limit()
        for one in _error_chain(error):
            _remove_own_frames(one.__traceback__)
        self._has_shown_message = False
        self._show(exc_tuple, *arguments, **named)
        if not self._has_shown_message:
            # IPython shows exception groups without `_showtraceback`.
            free_frames(error)
            print(*self._message_lines(), sep="\n", file=sys.stderr)

    def _show_lines_patched(self, kind, error, lines):
        if is_about_memory(error):
            free_frames(error)
            lines = [*lines, *self._message_lines()]
            self._has_shown_message = True
        return self._show_lines(kind, error, lines)

    def _message_lines(self) -> List[str]:
        resident, may_use = holders.resident_bytes(), _attach.may_use()
        of = f" of the {format_bytes(may_use)} it may use" if may_use else ""
        lines = [
            "",
            "antifreeze: this cell ran out of memory. The kernel and its variables are still here, with "
            f"{format_bytes(resident)}{of}.",
        ]
        largest = self._largest()
        if largest:
            names = ", ".join(f"{name} ({format_bytes(size)})" for name, size in largest)
            lines.append(f"            Largest: {names}. Delete what you do not need: del {largest[0][0]}")
        results = min(holders.estimate_bytes(self._shell.user_ns.get("Out"), 3), resident)
        if results >= max(MIN_BYTES, resident // 10):
            # IPython keeps them under several names, so deleting one of these frees nothing.
            lines.append(f"            IPython keeps displayed results ({format_bytes(results)}): %reset -f out")
        lines.append("            Otherwise use smaller batches, or load the data in parts. See `antifreeze explain`.")
        return lines

    def _largest(self):
        """Returns the variables of the notebook that hold most, with an estimate of their bytes."""
        held, limit = [], holders.max_holdable_bytes()
        for name, value in list(self._shell.user_ns.items()):
            if name.startswith("_") or name in _IPYTHON_NAMES or isinstance(value, _NON_HOLDER_TYPES):
                continue
            size = holders.estimate_bytes(value, 2)
            held.append((min(size, limit) if limit else size, name))
        return [(name, size) for size, name in sorted(held, reverse=True)[:MAX_NAMES] if size >= MIN_BYTES]


def is_about_memory(error: Optional[BaseException]) -> bool:
    """Whether the error, or one that led to it, is an out-of-memory error."""
    return isinstance(error, BaseException) and any(map(oom.is_out_of_memory, _error_chain(error)))


def free_frames(error: BaseException) -> None:
    """Frees the variables of the frames that failed. The traceback stays, without the values."""
    for one in _error_chain(error):
        trace = one.__traceback__
        while trace is not None:
            _clear_frame(trace.tb_frame)
            trace = trace.tb_next
    free_unused_memory()


def _error_chain(error):
    """Yields the error and all that led to it."""
    todo, seen = [error], set()
    while todo:
        error = todo.pop()
        if not isinstance(error, BaseException) or id(error) in seen:
            continue
        seen.add(id(error))
        yield error
        several = getattr(error, "exceptions", ())
        todo += [error.__cause__, error.__context__, *(several if isinstance(several, (tuple, list)) else ())]


def _remove_own_frames(trace):
    """Removes the frames of antifreeze from the end of a traceback, so that it ends at the cell's line."""
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename.startswith(_SHIM_FOLDER):
            trace.tb_next = None
        trace = trace.tb_next


def _clear_frame(frame):
    try:
        frame.clear()
    except RuntimeError:
        # The frame is still running.
        return
    # Code that showed the traceback has read `f_locals`, which is a copy. Reading it again updates the copy.
    if frame.f_locals is not frame.f_globals:
        frame.f_locals


def format_bytes(size: int) -> str:
    for unit, bytes in (("GB", 1e9), ("MB", 1e6)):
        if size >= bytes:
            return f"{size / bytes:.3g} {unit}"
    return f"{size / 1e3:.0f} kB"
