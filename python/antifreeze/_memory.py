"""Gives memory back that nobody uses any more: after a request was refused, before it is made again."""

from __future__ import annotations

import ctypes
import gc
import sys


def give_back() -> None:
    """Call it out of the `except`: inside, the error leads to all that did not fit."""
    gc.collect()
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.empty_cache()
    trim()


def trim() -> None:
    """Freed memory may stay with the allocator; this gives it back to the machine."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        # Another C library.
        pass
