"""Knows an exception that means "out of memory" when it sees one, in any of its spellings."""

import errno

# Whole words of the frameworks, in lower case.
_SIGNS = (
    "out of memory",
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "unable to allocate",
    "failed to allocate",
    "oom when allocating",
    "resource_exhausted",
    "std::bad_alloc",
    "alloc_failed",
    "insufficient shared memory",
    "can't start new thread",
    "is killed by signal: killed",
    # Of workers, where the error itself cannot be made again.
    "caught memoryerror in",
    "caught _arraymemoryerror in",
    "caught outofmemoryerror in",
)
# Said by a library that had no memory left and did not know.
_DISGUISES = ("cudnn_status_not_supported", "cudnn_status_internal_error", "ynnpack operation failed")
_NAMES = ("OutOfMemoryError", "ResourceExhaustedError", "_ArrayMemoryError")
# An exception without a text of its own; its name does not tell either.
_LIKELY = (RuntimeError, ValueError, OSError)
# Characters of a text, at either end of it.
_LOOKED_AT = 2000


def is_out_of_memory(error):
    kind = type(error)
    if isinstance(error, MemoryError) or kind.__name__ in _NAMES:
        return True
    if not isinstance(error, _LIKELY) and kind.__name__ != "XlaRuntimeError":
        return False
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = _text(error)
    return any(sign in text for sign in _SIGNS)


def may_be_out_of_memory(error):
    """By what a library says when it has no memory left and does not know."""
    text = _text(error)
    return any(sign in text for sign in _DISGUISES)


def _text(error):
    """Where it begins, and where it ends: what comes from a worker has a traceback before what it says. Only what is
    there already is looked at: to format a message may run code of the script."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    return (text if len(text) <= 2 * _LOOKED_AT else text[:_LOOKED_AT] + "\n" + text[-_LOOKED_AT:]).lower()


def again(kind, text, reason):
    """The error once more, without what it led to, and with what is to be said to it."""
    text = f"{text} ({reason})"
    try:
        return kind(text)
    except Exception:
        return MemoryError(text)
