"""Small things that training loops get wrong: buffers that keep graphs, numbers that are none, phases nobody knows."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import math
import sys
from typing import Any, Iterable, Iterator, Optional

from ._shim.holders import _is_a

PHASES = {"data": 1, "forward": 2, "backward": 3, "optimizer": 4, "evaluation": 5, "saving": 6}


class RollingBuffer:
    """Keeps the last of what is put into it: so many, or so many bytes of them, or both. Tensors are detached, so that
    no graph of an old step is kept, and of a view only its own part is.

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
    if isinstance(value, collections.abc.Mapping):
        inner = {key: _detached(inner) for key, inner in value.items()}
        return inner if isinstance(value, dict) else _made_as(value, inner)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_detached, value))
    if isinstance(value, (tuple, list)):
        return _made_as(value, [_detached(inner) for inner in value])
    value = value.detach() if hasattr(value, "detach") else value
    try:
        return _without_the_rest(value)
    except Exception:
        # Of a kind that has no storage.
        return value


def _made_as(pattern, inner):
    try:
        return type(pattern)(inner)
    except Exception:
        return inner


def _without_the_rest(value):
    """A view keeps all of what it is a view of: a part is copied."""
    if _is_a(value, ("torch", "Tensor")):
        return value.clone() if value.untyped_storage().nbytes() > value.nbytes else value
    if _is_a(value, ("numpy", "ndarray")):
        whole = value
        while _is_a(whole.base, ("numpy", "ndarray")):
            whole = whole.base
        # What is in a file takes no memory.
        return value.copy() if whole.base is None and whole.nbytes > value.nbytes else value
    return value


def _bytes(value):
    """Of a view its own part. Nothing is raised: it is but a measure."""
    if isinstance(value, collections.abc.Mapping):
        return sys.getsizeof(value, 64) + sum(map(_bytes, value.values()))
    if isinstance(value, (tuple, list)):
        return sys.getsizeof(value, 64) + sum(map(_bytes, value))
    with contextlib.suppress(Exception):
        return sum(map(_bytes_of_array, _made_of(value)))
    return sys.getsizeof(value, 64)


def _bytes_of_array(array):
    if _is_a(array, ("torch", "Tensor")):
        # An expanded one has less than it shows.
        return min(array.nbytes, array.untyped_storage().nbytes())
    size = getattr(array, "nbytes", None)
    # TensorFlow's know their shape only.
    return size if isinstance(size, int) else array.dtype.size * math.prod(array.shape)


def _made_of(value):
    """What something sparse, ragged or nested is made of, its numbers first; of everything else, itself."""
    torch, tensorflow = sys.modules.get("torch"), sys.modules.get("tensorflow")
    if _is_a(value, ("torch", "Tensor")):
        if value.layout is torch.sparse_coo:
            return [value._values(), value._indices()]
        if value.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [value.values(), value.crow_indices(), value.col_indices()]
        if value.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [value.values(), value.ccol_indices(), value.row_indices()]
        return [value.values()] if value.is_nested else [value]
    if _is_a(value, ("tensorflow", "SparseTensor"), ("tensorflow", "IndexedSlices")):
        return [value.values, value.indices]
    if _is_a(value, ("tensorflow", "RaggedTensor")):
        return [value.flat_values, *value.nested_row_splits]
    # Of SciPy and JAX.
    if hasattr(value, "shape") and (hasattr(value, "nnz") or hasattr(value, "nse")):
        return [value.data]
    return [value]


def check_finite(value: Any, name: Optional[str] = None) -> Any:
    """Raises FloatingPointError where something is not a number or infinite, and says where; gives it back otherwise.
    For numbers, tensors and arrays of any framework, sparse ones too, tuples, lists and mappings of them, PyTorch
    modules, of which parameters and gradients are looked at, and models of Keras, of which weights are.

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
    if isinstance(value, collections.abc.Mapping):
        for key, inner in value.items():
            yield from _not_finite(inner, f"{place}[{key!r}]")
    elif isinstance(value, (tuple, list, set, frozenset, collections.deque, RollingBuffer)):
        for index, inner in enumerate(value):
            yield from _not_finite(inner, f"{place}[{index}]")
    elif isinstance(value, type) or _is_a(value, ("torch.nn.parameter", "UninitializedTensorMixin")):
        return
    elif hasattr(value, "named_parameters"):
        for name, parameter in value.named_parameters():
            place_of = f"{place}.{name}" if place else name
            yield from _not_finite(parameter, place_of)
            if parameter.grad is not None:
                yield from _not_finite(parameter.grad, f"the gradient of {place_of}")
    elif _is_a(value, ("keras", "Layer"), ("tensorflow", "Module")):
        weights = value.weights if hasattr(value, "weights") else value.variables
        for weight in weights:
            name = getattr(weight, "path", weight.name)
            yield from _not_finite(weight, f"{place}.{name}" if place else name)
    elif _is_a(value, ("torch", "Tensor")) or hasattr(value, "shape"):
        yield from _not_finite_in(_made_of(value)[0], place)
    elif not isinstance(value, int) and (isinstance(value, complex) or hasattr(value, "__float__")):
        bad = _bad_part(value)
        if bad is not None:
            yield place, f"is {bad}"


def _bad_part(number):
    """What is not finite of it; None if all of it is."""
    try:
        parts = (number.real, number.imag) if isinstance(number, complex) else (float(number),)
    except OverflowError:
        # Larger than a float may be, and finite.
        return None
    return next((part for part in parts if not math.isfinite(part)), None)


def _not_finite_in(array, place):
    """One look at all of it; only what is bad is counted."""
    if _is_a(array, ("keras", "Variable")):
        array = array.value
    if _is_a(array, ("torch", "Tensor")):
        finite = _finite_in_torch(array)
    elif _is_a(array, ("tensorflow", "Tensor"), ("tensorflow", "Variable")):
        finite = _finite_in_tensorflow(array)
    elif str(getattr(array, "dtype", "")).startswith("key<"):
        # JAX's random numbers.
        return
    else:
        import numpy

        held = numpy.asarray(array)
        if held.dtype.names:
            for field in held.dtype.names:
                yield from _not_finite_in(held[field], f"{place}[{field!r}]")
            return
        if held.dtype.kind == "O" and held.shape:
            for index, inner in enumerate(held.flat):
                yield from _not_finite(inner, f"{place}[{index}]")
            return
        array, finite = held, _finite_in_numpy(held)
    if finite is None or bool(finite.all()):
        return
    whole = math.prod(array.shape)
    bad = whole - int(finite.sum())
    if whole == 1:
        yield place, f"is {_bad_part(_only(array))}"
    else:
        yield place, f"has {bad} of {whole} values that are not finite"


def _only(array):
    """The number of an array that has but one."""
    if _is_a(array, ("torch", "Tensor")):
        return array.reshape(-1)[0].item()
    import numpy

    held = numpy.asarray(array).reshape(-1)
    return complex(held[0]) if held.dtype.kind == "c" else float(held[0])


def _finite_in_torch(tensor):
    """None where there is nothing to look at."""
    if tensor.is_meta or not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    tensor = tensor.detach()
    return (tensor.to_dense() if tensor.is_mkldnn else tensor).isfinite()


def _finite_in_tensorflow(tensor):
    tensorflow = sys.modules["tensorflow"]
    is_finite, tensor = tensorflow.math.is_finite, tensorflow.convert_to_tensor(tensor)
    if tensor.dtype.is_complex:
        finite = tensorflow.logical_and(
            is_finite(tensorflow.math.real(tensor)), is_finite(tensorflow.math.imag(tensor))
        )
    elif tensor.dtype.is_floating:
        # There are small kinds that it does not know.
        finite = is_finite(tensor if tensor.dtype.size > 1 else tensorflow.cast(tensor, "float32"))
    else:
        return None
    return finite.numpy()


def _finite_in_numpy(array):
    import numpy

    # Of the kinds that are no numbers; those that other packages add, such as bfloat16, are `V`.
    if array.dtype.kind in "biuSUTOmM":
        return None
    try:
        return numpy.isfinite(array)
    except TypeError:
        return None


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
    from ._shim.trainer import get_trainer

    words = get_trainer().steps.words
    before = words[PHASE]
    words[PHASE] = number
    try:
        yield
    finally:
        get_trainer().steps.words[PHASE] = before
