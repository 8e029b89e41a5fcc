"""Calls hooks when functions of a framework begin and end.

From Python 3.12 on this uses `sys.monitoring` for those functions only: nothing shows in tracebacks, other code is not
slowed down, and `torch.compile` sees no change. Earlier versions wrap the functions, which shows in tracebacks.
"""

import functools
import sys

from . import event_log

# The exception type that hooks raise for the script; all others are suppressed.
propagated = ()  # type: object

_HAS_MONITORING = sys.version_info >= (3, 12)


class CallHook:
    """The callbacks for one function: when it begins, returns, or raises. They may be replaced at any time. Without
    `fail`, `end` is called in its place. `set_enabled(False)` removes the hook, so that it costs nothing, until
    `set_enabled(True)`."""

    __slots__ = ("begin", "end", "fail", "takes", "set_enabled")

    def __init__(self, begin=None, end=None, fail=None, takes=0):
        self.begin, self.end, self.fail, self.takes = begin or _nothing, end or _nothing, fail, takes
        self.set_enabled = _nothing

    def disable(self, fault):
        """Called after a callback raised: none is called again."""
        self.begin = self.end = self.fail = _nothing
        self.takes = 0
        event_log.log_fault("calling a hook", fault)


def hook_calls(owner, name, begin=None, end=None, fail=None, takes=0, ends=True):
    """Makes the function `owner.name` call a hook, and returns the hook. `begin` gets the first `takes` arguments.
    Without `ends`, `end` may not be called."""
    function = getattr(owner, name)
    hook = CallHook(begin, end, fail, takes)
    if _HAS_MONITORING:
        hook.set_enabled = _monitor(_code_of(function), hook, ends)
    else:
        wrapped = _wrapped(function, hook)

        def set_enabled(enabled):
            current, new = (function, wrapped) if enabled else (wrapped, function)
            # Not if something else has wrapped it since.
            if vars(owner).get(name) is current:
                setattr(owner, name, new)

        hook.set_enabled = set_enabled
        setattr(owner, name, wrapped)
    return hook


def hook_raises(raised):
    """Calls `raised(exception)` for each exception, caught or not. Returns False before Python 3.12, where that is not
    possible."""
    if _HAS_MONITORING:
        tool, events = _tool(), sys.monitoring.events

        def on_raise(code, offset, error):
            try:
                raised(error)
            except propagated:
                raise
            except Exception as fault:
                event_log.log_fault("handling an exception", fault)

        sys.monitoring.register_callback(tool, events.RAISE, on_raise)
        sys.monitoring.set_events(tool, sys.monitoring.get_events(tool) | events.RAISE)
    return _HAS_MONITORING


def do_nothing(*_):
    pass


# The same without arguments, and faster because it is no Python function.
_nothing = bool

# id of a code object → its hook: hashing a code object is slow. A reference keeps the id unique.
_hooks_by_code = {}  # type: dict
_codes = []  # type: list
_tool_id = None


def _tool():
    """Returns our tool id of `sys.monitoring`."""
    global _tool_id
    if _tool_id is None:
        monitoring = sys.monitoring
        # 3 and 4 are unreserved; the others are for debuggers, coverage, profilers and optimizers.
        for number in (4, 3, 1, 2, 0, 5):
            if monitoring.get_tool(number) is None:
                monitoring.use_tool_id(number, "antifreeze")
                _tool_id = number
                break
        else:
            raise RuntimeError("all tool ids of sys.monitoring are in use")
        events = monitoring.events
        monitoring.register_callback(_tool_id, events.PY_START, _on_start)
        monitoring.register_callback(_tool_id, events.PY_RETURN, _on_return)
        monitoring.register_callback(_tool_id, events.PY_UNWIND, _on_unwind)
        # PY_UNWIND can only be enabled for all functions.
        monitoring.set_events(_tool_id, events.PY_UNWIND)
    return _tool_id


def _monitor(code, hook, ends):
    tool, events = _tool(), sys.monitoring.events
    _codes.append(code)
    local_events = events.PY_START | (events.PY_RETURN if ends else 0)

    def set_enabled(enabled):
        # PY_UNWIND is reported even if no local event is set.
        _hooks_by_code[id(code)] = hook if enabled else _ABSENT
        sys.monitoring.set_local_events(tool, code, local_events if enabled else 0)

    set_enabled(True)
    return set_enabled


_ABSENT = CallHook()


def _on_start(code, offset):
    hook = _hooks_by_code[id(code)]
    try:
        if hook.takes:
            named = sys._getframe(1).f_locals
            hook.begin(*[named[name] for name in code.co_varnames[: hook.takes]])
        else:
            hook.begin()
    except propagated:
        raise
    except Exception as fault:
        hook.disable(fault)


def _on_return(code, offset, result):
    hook = _hooks_by_code[id(code)]
    try:
        hook.end()
    except propagated:
        raise
    except Exception as fault:
        hook.disable(fault)


def _on_unwind(code, offset, error):
    hook = _hooks_by_code.get(id(code))
    if hook is not None:
        try:
            (hook.fail or hook.end)()
        except Exception as fault:
            hook.disable(fault)


def _code_of(function):
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function.__code__


def _wrapped(function, hook):
    names = _code_of(function).co_varnames

    @functools.wraps(function)
    def antifreeze(*arguments, **named):
        try:
            if hook.takes:
                rest = [named.get(name) for name in names[len(arguments) : hook.takes]]
                hook.begin(*arguments[: hook.takes], *rest)
            else:
                hook.begin()
        except propagated:
            raise
        except Exception as fault:
            hook.disable(fault)
        try:
            result = function(*arguments, **named)
        except BaseException:
            try:
                (hook.fail or hook.end)()
            except Exception as fault:
                hook.disable(fault)
            raise
        try:
            hook.end()
        except propagated:
            raise
        except Exception as fault:
            hook.disable(fault)
        return result

    return antifreeze
