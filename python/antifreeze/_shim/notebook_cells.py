"""Reports which file name stands for which notebook cell: IPython compiles each cell under a temporary file name."""

import sys

from . import event_log

_reported = set()  # type: set


def report_new_cells():
    """Reports the cells that were compiled since the last call. Does nothing outside of IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    compiled = getattr(getattr(shell, "compile", None), "_filename_map", None)
    if isinstance(compiled, dict):
        for file, number in list(compiled.items()):
            _report_once(file, number)


def report_running_cell(shell, raw_cell):
    """Reports a cell before it is compiled, so that it is known while it runs or hangs."""
    get_name = getattr(shell.compile, "get_code_name", None)
    if get_name is not None and isinstance(raw_cell, str):
        number = shell.execution_count
        _report_once(get_name(raw_cell, shell.transform_cell(raw_cell), number), number)


def reset():
    """Forgets what was reported, because a new run begins."""
    _reported.clear()


def _report_once(file, number):
    if isinstance(file, str) and isinstance(number, int) and (file, number) not in _reported:
        _reported.add((file, number))
        event_log.log_event("cell", file=file, number=number)
