"""Recognizes out-of-memory errors of Python, the frameworks and their libraries."""

import errno

# Parts of the messages, in lower case.
_MESSAGES = (
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
    # Errors of DataLoader workers that could not be constructed again in this process.
    "caught memoryerror in",
    "caught _arraymemoryerror in",
    "caught outofmemoryerror in",
)
# Messages of libraries that ran out of memory and report another error.
_MISLEADING_MESSAGES = ("cudnn_status_not_supported", "cudnn_status_internal_error", "ynnpack operation failed")
_NAMES = ("OutOfMemoryError", "ResourceExhaustedError", "_ArrayMemoryError")
# Generic types whose message has to be searched.
_GENERIC_TYPES = (RuntimeError, ValueError, OSError)
# Characters that are searched at either end of a message.
_SEARCHED_CHARS = 2000


def is_out_of_memory(error):
    kind = type(error)
    if isinstance(error, MemoryError) or kind.__name__ in _NAMES:
        return True
    if not isinstance(error, _GENERIC_TYPES) and kind.__name__ != "XlaRuntimeError":
        return False
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = _searched_text(error)
    return any(message in text for message in _MESSAGES)


def may_be_out_of_memory(error):
    """Whether the message is one that libraries use for other errors too."""
    text = _searched_text(error)
    return any(message in text for message in _MISLEADING_MESSAGES)


def _searched_text(error):
    """Returns both ends of the message: in an error of a worker, a traceback stands before the message. Uses `args`
    only, because formatting a message may run code of the script."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if len(text) > 2 * _SEARCHED_CHARS:
        text = text[:_SEARCHED_CHARS] + "\n" + text[-_SEARCHED_CHARS:]
    return text.lower()


def with_reason(kind, text, reason):
    """Creates an error of the same type, without the traceback, and with a reason added to the message."""
    text = f"{text} ({reason})"
    try:
        return kind(text)
    except Exception:
        return MemoryError(text)
