"""Learns when functions of a framework begin and end, without a frame in anybody's traceback.

From Python 3.12 on by `sys.monitoring`, of those functions alone: the rest of the program runs as fast
as ever, and `torch.compile` sees what it always saw. Before, by wrapping them, which shows in tracebacks.
"""

import functools
import sys
import threading

from . import report

# Raised by what is called here, it is meant for the script.
passing = ()
# What a function that raised has for a result.
FAILED = object()

_HAS_MONITORING = sys.version_info >= (3, 12)
# The thread that trains: the main one, unless another is seen to train first.
_thread = threading.main_thread().ident
_is_known = False


def trains_here():
    """This thread trains; what others do is not looked at."""
    global _thread, _is_known
    if not _is_known:
        _thread, _is_known = threading.get_ident(), True


def watch(owner, name, begin=None, end=None, takes=0, anywhere=False):
    """Calls `begin()` when the function `owner.name` begins in the thread that trains, and `end(result)`
    when it has ended, with FAILED when it raised. `begin` takes so many of its arguments.
    `anywhere`: in other threads as well."""
    function = getattr(owner, name)
    watcher = _Watcher(begin or _nothing, end or _nothing, takes, anywhere)
    if _HAS_MONITORING:
        _monitor(_code_of(function), watcher)
    else:
        setattr(owner, name, _wrapped(function, watcher))


def watch_code(code, begin=None, end=None, takes=0, anywhere=False):
    """The same for a piece of code that several functions share. Nothing before Python 3.12."""
    if _HAS_MONITORING:
        _monitor(code, _Watcher(begin or _nothing, end or _nothing, takes, anywhere))
    return _HAS_MONITORING


def watch_errors(raised):
    """Calls `raised(exception)` when one is raised, caught or not. Nothing before Python 3.12."""
    if _HAS_MONITORING:
        tool, events = _tool(), sys.monitoring.events

        def on_raise(code, offset, error):
            try:
                raised(error)
            except passing:
                raise
            except Exception as fault:
                _give_up("an exception", fault)

        sys.monitoring.register_callback(tool, events.RAISE, on_raise)
        sys.monitoring.set_events(tool, sys.monitoring.get_events(tool) | events.RAISE)
    return _HAS_MONITORING


class _Watcher:
    __slots__ = ("begin", "end", "takes", "anywhere")

    def __init__(self, begin, end, takes, anywhere):
        self.begin, self.end, self.takes, self.anywhere = begin, end, takes, anywhere

    def give_up(self, fault):
        """Once it has failed, it is not asked again."""
        self.begin = self.end = _nothing
        self.takes = 0
        _give_up("an event", fault)


def _nothing(*_):
    pass


def _give_up(what, fault):
    with report.safely(what):
        raise fault


def _is_elsewhere(watcher):
    return _thread != threading.get_ident() and not watcher.anywhere


# By the id of their code: to hash a code object is slow. The code is kept, so that ids stay its own.
_watched = {}
_kept = []
_number = None


def _tool():
    """The number that sys.monitoring knows us by."""
    global _number
    if _number is None:
        monitoring = sys.monitoring
        # The others have names: debugger, coverage, profiler, optimizer.
        for number in (4, 3, 1, 2, 0, 5):
            if monitoring.get_tool(number) is None:
                monitoring.use_tool_id(number, "antifreeze")
                _number = number
                break
        else:
            raise RuntimeError("all of sys.monitoring's tools are taken")
        events = monitoring.events
        monitoring.register_callback(_number, events.PY_START, _on_start)
        monitoring.register_callback(_number, events.PY_RETURN, _on_return)
        monitoring.register_callback(_number, events.PY_UNWIND, _on_unwind)
        # That a function failed is told for all functions, or none.
        monitoring.set_events(_number, events.PY_UNWIND)
    return _number


def _monitor(code, watcher):
    tool, events = _tool(), sys.monitoring.events
    _watched[id(code)] = watcher
    _kept.append(code)
    sys.monitoring.set_local_events(tool, code, events.PY_START | events.PY_RETURN)


def _on_start(code, offset):
    watcher = _watched[id(code)]
    if _is_elsewhere(watcher):
        return
    try:
        if watcher.takes:
            named = sys._getframe(1).f_locals
            watcher.begin(*[named[name] for name in code.co_varnames[: watcher.takes]])
        else:
            watcher.begin()
    except passing:
        raise
    except Exception as fault:
        watcher.give_up(fault)


def _on_return(code, offset, result):
    watcher = _watched[id(code)]
    if _is_elsewhere(watcher):
        return
    try:
        watcher.end(result)
    except passing:
        raise
    except Exception as fault:
        watcher.give_up(fault)


def _on_unwind(code, offset, error):
    watcher = _watched.get(id(code))
    if watcher is None or _is_elsewhere(watcher):
        return
    try:
        watcher.end(FAILED)
    except Exception as fault:
        watcher.give_up(fault)


def _code_of(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__


def _wrapped(function, watcher):
    names = _code_of(function).co_varnames

    @functools.wraps(function)
    def antifreeze(*arguments, **named):
        if _is_elsewhere(watcher):
            return function(*arguments, **named)
        try:
            rest = [named.get(name) for name in names[len(arguments) : watcher.takes]]
            watcher.begin(*arguments[: watcher.takes], *rest)
        except passing:
            raise
        except Exception as fault:
            watcher.give_up(fault)
        result = FAILED
        try:
            result = function(*arguments, **named)
            return result
        finally:
            try:
                watcher.end(result)
            except passing:
                raise
            except Exception as fault:
                watcher.give_up(fault)

    return antifreeze
