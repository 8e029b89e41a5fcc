"""Frees memory that is no longer in use: after a refused request, before it is tried again."""

from __future__ import annotations

import ctypes
import gc
import sys


def free_unused_memory() -> None:
    """Call it outside of the `except` block: inside, the error's traceback holds everything that did not fit."""
    gc.collect()
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        cuda.empty_cache()
    trim_heap()


def trim_heap() -> None:
    """Returns freed memory from the C allocator to the system."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        # A C library without malloc_trim.
        pass
