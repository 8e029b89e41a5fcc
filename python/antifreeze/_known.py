"""What earlier steps have shown of a function that goes forward: where the next begins, never what is right."""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from typing import Any, Dict, Iterator, Tuple


class Known:
    def __init__(self) -> None:
        # The size that fits; None while all did.
        self.fits: Any = None
        self.is_warned = False
        # BatchNorm and its like that the last step has called.
        self.norms: Any = []
        # Large buffers that did not change, by module.
        self.steady: Any = weakref.WeakKeyDictionary()
        # One of the layers, to see that the model is gone.
        self.layer: Any = None
        # Modules that are called where no hook sees it.
        self.hidden: Any = None

    def is_of_the_living(self) -> bool:
        return self.layer is None or self.layer() is not None


_known: Any = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def known_of(function: Any) -> Known:
    """Of this code, with these models, in this thread. A function that is defined anew in each step has the same."""
    models = [module for module, _ in modules_of(function)]
    key = threading.get_ident(), tuple(map(id, models))
    try:
        with _lock:
            of_code: Dict[Any, Tuple[Any, Known]] = _known.setdefault(_code(function), {})
            entry = of_code.get(key)
            # Another may have come to lie where one was.
            if entry is None or any(holder() is not model for holder, model in zip(entry[0], models)):
                for other, (holders, _) in list(of_code.items()):
                    if any(holder() is None for holder in holders):
                        del of_code[other]
                entry = of_code[key] = [weakref.ref(model) for model in models], Known()
            return entry[1]
    except TypeError:
        return Known()


def _code(function):
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return getattr(function, "__code__", function)


def modules_of(thing: Any, is_hidden: bool = False, depth: int = 4) -> Iterator[Tuple[Any, bool]]:
    """Modules that a function holds, in its closure, its object or by a global name; and whether it calls them in
    compiled code, where no hook sees them."""
    if isinstance(thing, sys.modules["torch"].nn.Module):
        yield thing, is_hidden
        return
    if depth == 0:
        return
    held: Any = ()
    if isinstance(thing, functools.partial):
        held = thing.func, *thing.args, *thing.keywords.values()
    elif isinstance(thing, types.MethodType):
        held = thing.__self__, thing.__func__
    elif isinstance(thing, types.FunctionType):
        compiled = thing.__dict__.get("_torchdynamo_orig_callable")
        if compiled is not None:
            held, is_hidden = (compiled,), True
        else:
            held = *_in_closure(thing), *_by_name(thing)
    elif hasattr(thing, "__dict__") and not isinstance(thing, (type, types.ModuleType)):
        # Such as a trainer of the script's own.
        module = sys.modules["torch"].nn.Module
        held = [value for value in list(vars(thing).values()) if isinstance(value, module)]
    for value in held:
        yield from modules_of(value, is_hidden, depth - 1)


def _in_closure(function):
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            # Not given a value yet.
            pass


def _by_name(function):
    module = sys.modules["torch"].nn.Module
    for name in function.__code__.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, module) or hasattr(value, "_torchdynamo_orig_callable"):
            yield value
