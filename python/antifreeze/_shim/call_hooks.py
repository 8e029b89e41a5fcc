"""Learns when functions of a framework begin and end, without a frame in anybody's traceback.

From Python 3.12 on by `sys.monitoring`, of those functions alone: the rest of the program runs as fast
as ever, and `torch.compile` sees what it always saw. Before, by wrapping them, which shows in tracebacks.
"""

import functools
import sys

from . import event_log

# Raised by what is called here, it is meant for the script.
propagated = ()  # type: object

_HAS_MONITORING = sys.version_info >= (3, 12)


class CallHook:
    """What is called when a function begins, and when it has ended or failed. Any of it may be changed at any
    time. Without a `fail`, failing is an end like another. `put(False)` takes it out of the function's way, so
    that it costs do_nothing, until `put(True)`."""

    __slots__ = ("begin", "end", "fail", "takes", "put")

    def __init__(self, begin=None, end=None, fail=None, takes=0):
        self.begin, self.end, self.fail, self.takes = begin or _nothing, end or _nothing, fail, takes
        self.put = _nothing

    def give_up(self, fault):
        """Once it has gone wrong, it is not asked again."""
        self.begin = self.end = self.fail = _nothing
        self.takes = 0
        event_log.log_fault("an event", fault)


def hook_calls(owner, name, begin=None, end=None, fail=None, takes=0, ends=True):
    """Has the function `owner.name` call a mark. `begin` takes so many of its arguments. Without `ends` that it
    has ended may not be told."""
    function = getattr(owner, name)
    mark = CallHook(begin, end, fail, takes)
    if _HAS_MONITORING:
        mark.put = _monitor(_code_of(function), mark, ends)
    else:
        wrapped = _wrapped(function, mark)

        def put(is_there):
            there, then = (function, wrapped) if is_there else (wrapped, function)
            # Unless somebody else has wrapped it since.
            if vars(owner).get(name) is there:
                setattr(owner, name, then)

        mark.put = put
        setattr(owner, name, wrapped)
    return mark


def hook_raises(raised):
    """Calls `raised(exception)` when one is raised, caught or not. Nothing before Python 3.12."""
    if _HAS_MONITORING:
        tool, events = _tool(), sys.monitoring.events

        def on_raise(code, offset, error):
            try:
                raised(error)
            except propagated:
                raise
            except Exception as fault:
                event_log.log_fault("an exception", fault)

        sys.monitoring.register_callback(tool, events.RAISE, on_raise)
        sys.monitoring.set_events(tool, sys.monitoring.get_events(tool) | events.RAISE)
    return _HAS_MONITORING


def do_nothing(*_):
    pass


# The same without arguments, and no function of Python.
_nothing = bool

# By the id of their code: to hash a code object is slow. The code is kept, so that ids stay its own.
_watched = {}  # type: dict
_kept = []  # type: list
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


def _monitor(code, mark, ends):
    tool, events = _tool(), sys.monitoring.events
    _kept.append(code)
    heard = events.PY_START | (events.PY_RETURN if ends else 0)

    def put(is_there):
        # Also for failures, which are told of all functions.
        _watched[id(code)] = mark if is_there else _ABSENT
        sys.monitoring.set_local_events(tool, code, heard if is_there else 0)

    put(True)
    return put


_ABSENT = CallHook()


def _on_start(code, offset):
    mark = _watched[id(code)]
    try:
        if mark.takes:
            named = sys._getframe(1).f_locals
            mark.begin(*[named[name] for name in code.co_varnames[: mark.takes]])
        else:
            mark.begin()
    except propagated:
        raise
    except Exception as fault:
        mark.give_up(fault)


def _on_return(code, offset, result):
    mark = _watched[id(code)]
    try:
        mark.end()
    except propagated:
        raise
    except Exception as fault:
        mark.give_up(fault)


def _on_unwind(code, offset, error):
    mark = _watched.get(id(code))
    if mark is not None:
        try:
            (mark.fail or mark.end)()
        except Exception as fault:
            mark.give_up(fault)


def _code_of(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__


def _wrapped(function, mark):
    names = _code_of(function).co_varnames

    @functools.wraps(function)
    def antifreeze(*arguments, **named):
        try:
            if mark.takes:
                rest = [named.get(name) for name in names[len(arguments) : mark.takes]]
                mark.begin(*arguments[: mark.takes], *rest)
            else:
                mark.begin()
        except propagated:
            raise
        except Exception as fault:
            mark.give_up(fault)
        try:
            result = function(*arguments, **named)
        except BaseException:
            try:
                (mark.fail or mark.end)()
            except Exception as fault:
                mark.give_up(fault)
            raise
        try:
            mark.end()
        except propagated:
            raise
        except Exception as fault:
            mark.give_up(fault)
        return result

    return antifreeze
