"""What `antifreeze.step` remembers of a function between steps. It decides where the next step begins, never what is
correct."""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from typing import Any, Dict, Iterator, Tuple


class SplitCache:
    def __init__(self) -> None:
        # The largest part that fits, in items; None while whole batches fit.
        self.fitting_size: Any = None
        self.has_warned = False
        # Weak references to the BatchNorm modules that the last step called.
        self.batch_norms: Any = []
        # Module → names of its large buffers that have not changed.
        self.unchanged_buffers: Any = weakref.WeakKeyDictionary()
        # A weak reference to one layer, which shows whether the model still exists.
        self.layer: Any = None
        # Weak references to modules whose calls no hook sees.
        self.hidden_modules: Any = None

    def is_model_alive(self) -> bool:
        return self.layer is None or self.layer() is not None


_caches: Any = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def split_cache_for(function: Any) -> SplitCache:
    """Returns the cache for this code with these models in this thread. A function that is defined anew in each step
    gets the same cache."""
    models = [module for module, _ in modules_held_by(function)]
    key = threading.get_ident(), tuple(map(id, models))
    try:
        with _lock:
            of_code: Dict[Any, Tuple[Any, SplitCache]] = _caches.setdefault(_code(function), {})
            entry = of_code.get(key)
            # A new model may have the id of a deleted one.
            if entry is None or any(reference() is not model for reference, model in zip(entry[0], models)):
                for other, (references, _) in list(of_code.items()):
                    if any(reference() is None for reference in references):
                        del of_code[other]
                entry = of_code[key] = [weakref.ref(model) for model in models], SplitCache()
            return entry[1]
    except TypeError:
        return SplitCache()


def _code(function):
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return getattr(function, "__code__", function)


def modules_held_by(value: Any, is_hidden: bool = False, depth: int = 4) -> Iterator[Tuple[Any, bool]]:
    """Yields the modules that a function reaches through its closure, its object or a global name, and whether it calls
    them in compiled code, where no hook sees the call."""
    if isinstance(value, sys.modules["torch"].nn.Module):
        yield value, is_hidden
        return
    if depth == 0:
        return
    held: Any = ()
    if isinstance(value, functools.partial):
        held = value.func, *value.args, *value.keywords.values()
    elif isinstance(value, types.MethodType):
        held = value.__self__, value.__func__
    elif isinstance(value, types.FunctionType):
        compiled = value.__dict__.get("_torchdynamo_orig_callable")
        if compiled is not None:
            held, is_hidden = (compiled,), True
        else:
            held = *_closure_values(value), *_global_modules(value)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, types.ModuleType)):
        # For example, a trainer object of the script.
        module = sys.modules["torch"].nn.Module
        held = [inner for inner in list(vars(value).values()) if isinstance(inner, module)]
    for inner in held:
        yield from modules_held_by(inner, is_hidden, depth - 1)


def _closure_values(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # The variable has no value yet.
            pass


def _global_modules(function):
    module = sys.modules["torch"].nn.Module
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, module) or hasattr(value, "_torchdynamo_orig_callable"):
            yield value
