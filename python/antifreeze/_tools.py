"""Small tools for training loops: `RollingBuffer`, `check_finite` and `phase`."""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import math
import sys
from typing import Any, Iterable, Iterator, Optional

from ._shim.holders import is_framework_instance

PHASES = {"data": 1, "forward": 2, "backward": 3, "optimizer": 4, "evaluation": 5, "saving": 6}


class RollingBuffer:
    """A list of the newest values, limited by their number, their bytes, or both. Tensors are detached, so that no
    graph of an old step stays in memory, and views are copied, so that `batch[0]` does not keep the batch.

    >>> import antifreeze
    >>> losses = antifreeze.RollingBuffer(3)
    >>> for loss in (4.0, 3.0, 2.0, 1.0):
    ...     losses.append(loss)
    >>> list(losses), losses.mean()
    ([3.0, 2.0, 1.0], 2.0)

    Raises ValueError without a limit, or if a limit is below 1.
    """

    def __init__(self, count: Optional[int] = None, *, bytes: Optional[int] = None) -> None:
        if count is None and bytes is None:
            raise ValueError("a RollingBuffer needs a limit: RollingBuffer(100) or RollingBuffer(bytes=1_000_000)")
        if count is not None and count < 1 or bytes is not None and bytes < 1:
            raise ValueError("the limit of a RollingBuffer must be at least 1")
        self._count, self._most = count, bytes
        self._held: collections.deque[tuple[Any, int]] = collections.deque()
        self.bytes = 0

    def append(self, value: Any) -> None:
        """Adds a value and removes the oldest ones beyond the limit. A value larger than the limit is kept alone."""
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
        """Returns the mean of numbers, or of tensors of one shape. NaN if the buffer is empty."""
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
        return inner if isinstance(value, dict) else _same_type(value, inner)
    if isinstance(value, tuple) and hasattr(value, "_make"):
        return value._make(map(_detached, value))
    if isinstance(value, (tuple, list)):
        return _same_type(value, [_detached(inner) for inner in value])
    value = value.detach() if hasattr(value, "detach") else value
    try:
        return _copy_view(value)
    except Exception:
        # A value without a storage.
        return value


def _same_type(pattern, inner):
    try:
        return type(pattern)(inner)
    except Exception:
        return inner


def _copy_view(value):
    """Copies a view, because it keeps the whole storage in memory."""
    if is_framework_instance(value, ("torch", "Tensor")):
        return value.clone() if value.untyped_storage().nbytes() > value.nbytes else value
    if is_framework_instance(value, ("numpy", "ndarray")):
        whole = value
        while is_framework_instance(whole.base, ("numpy", "ndarray")):
            whole = whole.base
        # A view of a memory-mapped file takes no memory.
        return value.copy() if whole.base is None and whole.nbytes > value.nbytes else value
    return value


def _bytes(value):
    """Returns the bytes of a value; of a view, its own part. Never raises."""
    if isinstance(value, collections.abc.Mapping):
        return sys.getsizeof(value, 64) + sum(map(_bytes, value.values()))
    if isinstance(value, (tuple, list)):
        return sys.getsizeof(value, 64) + sum(map(_bytes, value))
    with contextlib.suppress(Exception):
        return sum(map(_bytes_of_array, _component_arrays(value)))
    return sys.getsizeof(value, 64)


def _bytes_of_array(array):
    if is_framework_instance(array, ("torch", "Tensor")):
        # An expanded tensor has less storage than its shape shows.
        return min(array.nbytes, array.untyped_storage().nbytes())
    size = getattr(array, "nbytes", None)
    # TensorFlow tensors have no `nbytes`.
    return size if isinstance(size, int) else array.dtype.size * math.prod(array.shape)


def _component_arrays(value):
    """Returns the arrays of a sparse, ragged or nested value, its values first; of others, the value itself."""
    torch, tensorflow = sys.modules.get("torch"), sys.modules.get("tensorflow")
    if is_framework_instance(value, ("torch", "Tensor")):
        if value.layout is torch.sparse_coo:
            return [value._values(), value._indices()]
        if value.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [value.values(), value.crow_indices(), value.col_indices()]
        if value.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [value.values(), value.ccol_indices(), value.row_indices()]
        return [value.values()] if value.is_nested else [value]
    if is_framework_instance(value, ("tensorflow", "SparseTensor"), ("tensorflow", "IndexedSlices")):
        return [value.values, value.indices]
    if is_framework_instance(value, ("tensorflow", "RaggedTensor")):
        return [value.flat_values, *value.nested_row_splits]
    # Sparse arrays of SciPy and JAX.
    if hasattr(value, "shape") and (hasattr(value, "nnz") or hasattr(value, "nse")):
        return [value.data]
    return [value]


def check_finite(value: Any, name: Optional[str] = None) -> Any:
    """Returns `value`, or raises FloatingPointError if a number in it is NaN or infinite. The message says where.
    `name` is what the message calls the value.

    >>> import antifreeze
    >>> antifreeze.check_finite(0.5)
    0.5
    >>> antifreeze.check_finite({"loss": 0.1, "penalty": float("inf")})
    Traceback (most recent call last):
      ...
    FloatingPointError: ['penalty'] is inf

    Accepts numbers, tensors and arrays of any framework (also sparse ones), and lists, tuples and mappings of them. Of
    a PyTorch module, parameters and gradients are checked; of a Keras model, its weights.
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
    elif isinstance(value, type) or is_framework_instance(value, ("torch.nn.parameter", "UninitializedTensorMixin")):
        return
    elif hasattr(value, "named_parameters"):
        for name, parameter in value.named_parameters():
            place_of = f"{place}.{name}" if place else name
            yield from _not_finite(parameter, place_of)
            if parameter.grad is not None:
                yield from _not_finite(parameter.grad, f"the gradient of {place_of}")
    elif is_framework_instance(value, ("keras", "Layer"), ("tensorflow", "Module")):
        weights = value.weights if hasattr(value, "weights") else value.variables
        for weight in weights:
            name = getattr(weight, "path", weight.name)
            yield from _not_finite(weight, f"{place}.{name}" if place else name)
    elif is_framework_instance(value, ("torch", "Tensor")) or hasattr(value, "shape"):
        yield from _not_finite_in(_component_arrays(value)[0], place)
    elif not isinstance(value, int) and (isinstance(value, complex) or hasattr(value, "__float__")):
        bad = _bad_part(value)
        if bad is not None:
            yield place, f"is {bad}"


def _bad_part(number):
    """Returns the part of a number that is not finite, or None."""
    try:
        parts = (number.real, number.imag) if isinstance(number, complex) else (float(number),)
    except OverflowError:
        # An integer too large for a float is finite.
        return None
    return next((part for part in parts if not math.isfinite(part)), None)


def _not_finite_in(array, place):
    """Checks all values in one operation, and counts the bad ones only if there are any."""
    if is_framework_instance(array, ("keras", "Variable")):
        array = array.value
    if is_framework_instance(array, ("torch", "Tensor")):
        finite = _finite_in_torch(array)
    elif is_framework_instance(array, ("tensorflow", "Tensor"), ("tensorflow", "Variable")):
        finite = _finite_in_tensorflow(array)
    elif str(getattr(array, "dtype", "")).startswith("key<"):
        # Random keys of JAX.
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
        yield place, f"is {_bad_part(_only_number(array))}"
    else:
        yield place, f"has {bad} of {whole} values that are not finite"


def _only_number(array):
    """Returns the number of an array with one element."""
    if is_framework_instance(array, ("torch", "Tensor")):
        return array.reshape(-1)[0].item()
    import numpy

    held = numpy.asarray(array).reshape(-1)
    return complex(held[0]) if held.dtype.kind == "c" else float(held[0])


def _finite_in_torch(tensor):
    """Returns None if the tensor has no values that could be bad."""
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
        # It does not support 8-bit floats.
        finite = is_finite(tensor if tensor.dtype.size > 1 else tensorflow.cast(tensor, "float32"))
    else:
        return None
    return finite.numpy()


def _finite_in_numpy(array):
    import numpy

    # Types without NaN. Types that other packages add, such as bfloat16, have kind `V`.
    if array.dtype.kind in "biuSUTOmM":
        return None
    try:
        return numpy.isfinite(array)
    except TypeError:
        return None


@contextlib.contextmanager
def phase(name: str) -> Iterator[None]:
    """Reports the phase of the block, for loops whose phases antifreeze does not detect: "data", "forward", "backward",
    "optimizer", "evaluation" or "saving". Phases may be nested.

    >>> import antifreeze
    >>> with antifreeze.phase("evaluation"):
    ...     pass

    Raises ValueError for any other name.
    """
    number = PHASES.get(name)
    if number is None:
        raise ValueError(f"unknown phase {name!r}; use one of {', '.join(PHASES)}")
    from ._shim.page import PHASE
    from ._shim.trainer import get_trainer

    words = get_trainer().steps.words
    before = words[PHASE]
    words[PHASE] = number
    try:
        yield
    finally:
        get_trainer().steps.words[PHASE] = before
