"""Counts the items of a batch of any structure, and splits it into parts.

The number of items is one that all tensors agree on: their first dimension, or the length of a list with one element
for each item. Lists of other values (names, for example) are split too if they have that length. An ambiguous list is
resolved by the other tensors (`length`), or splitting is refused (`parts`), so items are never paired wrongly.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, Callable, Iterator, List, Optional

# A tensor of three dimensions with at most this many elements in the first is an image with its channels.
_MAX_CHANNELS = 4


class CannotSplit(ValueError):
    pass


class Batch:
    """A batch, with the versions that its tensors had, which show whether it can be used again."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._tensor_versions = [(leaf, leaf._version) for leaf in leaves(batch) if _has_version(leaf)]
        self._length: Optional[int] = None
        self._reason: Optional[str] = None

    def reason_not_to_split(self) -> Optional[str]:
        """Returns why the batch cannot be split, or None if it can."""
        if self._length is None and self._reason is None:
            try:
                self._length = length(self._batch)
                # The first part of one item shows whether splitting works.
                next(parts(self._batch, self._length, 1), None)
            except CannotSplit as error:
                self._reason = str(error)
        return self._reason

    def length(self) -> int:
        """Returns the number of items. The batch must be one that can be split."""
        assert self.reason_not_to_split() is None and self._length is not None
        return self._length

    def parts(self, size: Optional[int]) -> Iterator[Any]:
        if size is None:
            return iter([copy_containers(self._batch)])
        return parts(self._batch, self.length(), size)

    def reason_not_to_repeat(self) -> Optional[str]:
        if any(leaf._version != version for leaf, version in self._tensor_versions):
            return "the function changed a tensor of the batch in place, so it cannot run again; change a copy instead"
        return None


def _has_version(leaf):
    # Tensors made in inference mode have no version.
    return hasattr(leaf, "_version") and not (hasattr(leaf, "is_inference") and leaf.is_inference())


def length(batch: Any) -> int:
    """Returns the number of items in a batch. Raises CannotSplit if it is ambiguous."""
    # A tuple at the top level holds inputs and labels, not items.
    lengths = _common_lengths(batch) if type(batch) is tuple else _possible_lengths(batch)
    if lengths is None:
        lengths = sorted(_flat_lengths(batch))
        if len(lengths) > 1:
            raise CannotSplit(f"the number of items in the batch is ambiguous: it has lists of lengths {lengths}")
    if not lengths:
        sizes = sorted({int(leaf.shape[0]) for leaf in leaves(batch) if is_array(leaf) and len(leaf.shape)})
        if not sizes:
            raise CannotSplit("the number of items in the batch is unknown: it has no tensors")
        raise CannotSplit(f"the number of items in the batch is ambiguous: its tensors have {sizes} items")
    return lengths[0]


def parts(batch: Any, whole: int, size: int) -> Iterator[Any]:
    """Yields parts of nearly equal size, at most `size` items each."""
    if size >= whole:
        yield batch
        return
    number = math.ceil(whole / size)
    edges = [whole * index // number for index in range(number + 1)]
    for begin, end in zip(edges, edges[1:]):
        yield _slice(batch, whole, slice(begin, end))


def copy_containers(batch: Any) -> Any:
    """Copies the containers of a batch, but not its tensors, so that a function may add and remove elements."""
    return map_container(batch, copy_containers)


def leaves(batch: Any) -> Iterator[Any]:
    """Yields everything in a batch that is not a container."""
    if is_array(batch):
        yield batch
        return
    within = batch if isinstance(batch, (list, tuple)) else _field_values(batch)
    if within is None:
        yield batch
    else:
        for value in within:
            yield from leaves(value)


def is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "__getitem__")


def map_container(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Returns a container of the same type with `change` applied to each element. Other values are returned as they
    are."""
    if is_array(batch):
        return batch
    if type(batch) is dict:
        return {key: change(value) for key, value in batch.items()}
    if _is_mapping(batch):
        # Some mappings cannot be constructed from their items alone, such as defaultdict.
        new = copy.copy(batch)
        for key, value in batch.items():
            new[key] = change(value)
        return new
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(change, batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(map(change, batch))
    if _is_dataclass(batch):
        new = copy.copy(batch)
        for field in dataclasses.fields(batch):
            # Works for frozen dataclasses too.
            object.__setattr__(new, field.name, change(getattr(batch, field.name)))
        return new
    return batch


def _is_mapping(value):
    return hasattr(value, "items") and hasattr(value, "keys")


def _is_dataclass(value):
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _field_values(batch):
    """Returns the values of a container with named fields (inputs, labels, …), or None if it has none."""
    if _is_mapping(batch):
        return list(batch.values())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return list(batch)
    if _is_dataclass(batch) and not isinstance(batch, (list, tuple)):
        return [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    return None


def _possible_lengths(batch) -> Optional[List[int]]:
    """Returns the numbers of items that it may have, the likeliest first. None if it says nothing about them."""
    if is_array(batch):
        if getattr(batch, "is_nested", False):
            return []
        return [int(batch.shape[0])] if len(batch.shape) else None
    if hasattr(batch, "batch_sizes"):
        # A PackedSequence interleaves its items.
        return []
    if _field_values(batch) is not None:
        return _common_lengths(_field_values(batch))
    if isinstance(batch, (list, tuple)):
        field_lengths = _common_lengths(batch)
        if field_lengths is None or not _have_same_kind(batch):
            return field_lengths
        if isinstance(batch, list) and (not field_lengths or len(batch) > field_lengths[0] or _are_images(batch)):
            return [len(batch), *field_lengths]
        return [*field_lengths, len(batch)]
    return [] if any(map(is_array, getattr(batch, "__dict__", {}).values())) else None


def _common_lengths(values):
    common = None
    for lengths in map(_possible_lengths, values):
        if lengths is not None:
            common = lengths if common is None else [number for number in common if number in lengths]
    return common


def _have_same_kind(values):
    """Whether all values have one kind, as items of a batch do. Inputs and labels often differ."""
    return len({_kind(value) for value in values}) == 1


def _kind(value):
    if is_array(value):
        return str(getattr(value, "dtype", None)), len(value.shape)
    if _is_mapping(value):
        return frozenset(map(str, value.keys()))
    if isinstance(value, (list, tuple)) and value:
        return type(value), _kind(value[0])
    return type(value)


def _are_images(values):
    return all(is_array(value) and len(value.shape) == 3 and value.shape[0] <= _MAX_CHANNELS for value in values)


def _flat_lengths(batch):
    """Returns the lengths of the innermost lists. Used when the batch has no tensors."""
    if _field_values(batch) is not None:
        return set().union(*map(_flat_lengths, _field_values(batch)))
    if isinstance(batch, (list, tuple)):
        return set().union(*map(_flat_lengths, batch)) or {len(batch)}
    return set()


def _slice(batch, whole, part):
    if is_array(batch):
        return batch[part] if len(batch.shape) else batch
    if type(batch) in (list, tuple) and len(batch) == whole:
        field_lengths = _common_lengths(batch)
        if field_lengths is None or whole not in field_lengths:
            if type(batch) is tuple and all(isinstance(value, (int, float)) for value in batch):
                raise CannotSplit(f"a tuple of {whole} numbers is ambiguous: it may or may not have one for each item")
            return batch[part]
        if type(batch) is list and _have_same_kind(batch):
            raise CannotSplit(f"a list of {whole} tensors of length {whole} is ambiguous: each may be one item or not")
    if not isinstance(batch, (str, bytes)) and not _is_container(batch) and hasattr(batch, "__len__"):
        raise CannotSplit(f"antifreeze does not know how to split a {type(batch).__name__}")
    return map_container(batch, lambda value: _slice(value, whole, part))


def _is_container(batch):
    return isinstance(batch, (list, tuple)) or _field_values(batch) is not None
