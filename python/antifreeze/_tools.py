"""Small things that training loops get wrong: buffers that keep graphs, numbers that are none, phases nobody knows."""

from __future__ import annotations

import collections
import contextlib
import math
import sys
from typing import Any, Iterable, Iterator, Optional

PHASES = {"data": 1, "forward": 2, "backward": 3, "optimizer": 4, "evaluation": 5, "saving": 6}


class RollingBuffer:
    """Keeps the last of what is put into it: so many, or so many bytes of them, or both. Tensors are detached, so that
    no graph of an old step is kept.

    >>> import antifreeze
    >>> losses = antifreeze.RollingBuffer(3)
    >>> for loss in (4.0, 3.0, 2.0, 1.0):
    ...     losses.append(loss)
    >>> list(losses), losses.mean()
    ([3.0, 2.0, 1.0], 2.0)
    """

    def __init__(self, count: Optional[int] = None, *, bytes: Optional[int] = None) -> None:
        if count is None and bytes is None:
            raise ValueError("a RollingBuffer is bounded: RollingBuffer(100), or RollingBuffer(bytes=1_000_000)")
        if count is not None and count < 1 or bytes is not None and bytes < 1:
            raise ValueError("a RollingBuffer holds at least one thing")
        self._count, self._most = count, bytes
        self._held: collections.deque[tuple[Any, int]] = collections.deque()
        self.bytes = 0

    def append(self, value: Any) -> None:
        """Puts it in; what is oldest goes. What is larger than all that may be held is kept alone."""
        value = _detached(value)
        size = _bytes(value)
        self._held.append((value, size))
        self.bytes += size
        while len(self._held) > 1 and self._is_over():
            self.bytes -= self._held.popleft()[1]

    def extend(self, values: Iterable[Any]) -> None:
        for value in values:
            self.append(value)

    def clear(self) -> None:
        self._held.clear()
        self.bytes = 0

    def mean(self) -> Any:
        """Of numbers, or of tensors of one shape; NaN of nothing."""
        if not self._held:
            return math.nan
        return sum(self) / len(self)

    def _is_over(self):
        is_many = self._count is not None and len(self._held) > self._count
        return is_many or self._most is not None and self.bytes > self._most

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Any]:
        return (value for value, _ in self._held)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        return self._held[index][0]

    def __repr__(self):
        return f"RollingBuffer({list(self)!r})"


def _detached(value):
    if isinstance(value, dict):
        return {key: _detached(inner) for key, inner in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(map(_detached, value))
    return value.detach() if hasattr(value, "detach") else value


def _bytes(value):
    if isinstance(value, dict):
        return sys.getsizeof(value) + sum(map(_bytes, value.values()))
    if isinstance(value, (tuple, list)):
        return sys.getsizeof(value) + sum(map(_bytes, value))
    size = getattr(value, "nbytes", None)
    return size if isinstance(size, int) else sys.getsizeof(value)


def check_finite(value: Any, name: Optional[str] = None) -> Any:
    """Raises FloatingPointError where something is not a number or infinite, and says where; gives it back otherwise.
    For numbers, tensors and arrays of any framework, tuples, lists and dictionaries of them, and PyTorch modules: of
    these parameters and gradients are looked at.

    >>> import antifreeze
    >>> antifreeze.check_finite(0.5)
    0.5
    >>> antifreeze.check_finite({"loss": 0.1, "penalty": float("inf")})
    Traceback (most recent call last):
      ...
    FloatingPointError: ['penalty'] is inf
    """
    for place, found in _not_finite(value, name or ""):
        raise FloatingPointError(f"{place or 'the value'} {found}")
    return value


def _not_finite(value, place):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{index}]")
    elif hasattr(value, "named_parameters"):
        for name, parameter in value.named_parameters():
            place_of = f"{place}.{name}" if place else name
            yield from _not_finite(parameter.detach(), place_of)
            if parameter.grad is not None:
                yield from _not_finite(parameter.grad, f"the gradient of {place_of}")
    elif hasattr(value, "shape"):
        yield from _not_finite_in(value, place)
    elif isinstance(value, (float, complex)) or hasattr(value, "__float__"):
        number = value if isinstance(value, complex) else float(value)
        parts = (number.real, number.imag) if isinstance(number, complex) else (number,)
        bad = next((part for part in parts if not math.isfinite(part)), None)
        if bad is not None:
            yield place, f"is {bad}"


def _not_finite_in(array, place):
    """One look at all of it; only what is bad is counted."""
    module = type(array).__module__.partition(".")[0]
    if module == "tensorflow":
        numbers = sys.modules["tensorflow"].math
        is_number = array.dtype.is_floating
        finite = numbers.is_finite(array).numpy() if is_number else None
    elif hasattr(array, "isfinite"):
        finite = array.isfinite()
    else:
        import numpy

        finite = numpy.isfinite(numpy.asarray(array)) if numpy.asarray(array).dtype.kind in "fc" else None
    if finite is None or bool(finite.all()):
        return
    whole = math.prod(array.shape)
    bad = whole - int(finite.sum())
    if whole == 1:
        yield place, f"is {float(array)}"
    else:
        yield place, f"has {bad} of {whole} values that are not finite"


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Tells the guard what the script is at where the shim cannot see it: one of "data", "forward", "backward",
    "optimizer", "evaluation", "saving". Phases may be inside of each other.

    >>> import antifreeze
    >>> with antifreeze.phase("evaluation"):
    ...     pass
    """
    number = PHASES.get(name)
    if number is None:
        raise ValueError(f"no phase {name!r}; there are: {', '.join(PHASES)}")
    from ._shim.page import PHASE
    from ._shim.trainer import trainer

    words = trainer().steps.words
    before = words[PHASE]
    words[PHASE] = number
    try:
        yield
    finally:
        trainer().steps.words[PHASE] = before
