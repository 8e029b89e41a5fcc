"""Batches of any make: how many items one holds, and how it is cut into parts.

A number of items is one that all tensors agree on: their first dimension, or the length of a list in which each item
is one element. What holds for no tensor (names, in a list) is cut with them if it is as long. Where a list may be
read in two ways, it is told how (`length`), or not cut at all (`parts`): items are never paired wrongly in silence.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any, Callable, Iterator, List, Optional

# Tensors of three dimensions with so few in the first are images, and those are their colours.
_COLOURS = 4


class CannotCut(ValueError):
    pass


class Batch:
    """One, and how often it may be taken."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._versions = [(leaf, leaf._version) for leaf in leaves(batch) if _has_version(leaf)]
        self._length: Optional[int] = None
        self._why_whole: Optional[str] = None

    def why_whole(self) -> Optional[str]:
        """Why it cannot be cut. None if it can."""
        if self._length is None and self._why_whole is None:
            try:
                self._length = length(self._batch)
                # The first of all: it shows whether it can be done.
                next(parts(self._batch, self._length, 1), None)
            except CannotCut as error:
                self._why_whole = str(error)
        return self._why_whole

    def length(self) -> int:
        """Only of one that can be cut."""
        assert self.why_whole() is None and self._length is not None
        return self._length

    def parts(self, size: Optional[int]) -> Iterator[Any]:
        if size is None:
            return iter([fresh(self._batch)])
        return parts(self._batch, self.length(), size)

    def reason_not_to_repeat(self) -> Optional[str]:
        if any(leaf._version != version for leaf, version in self._versions):
            return "the function has changed a tensor of its batch in place, and would do so again; change a copy"
        return None


def _has_version(leaf):
    # Made in inference mode it has none.
    return hasattr(leaf, "_version") and not (hasattr(leaf, "is_inference") and leaf.is_inference())


def length(batch: Any) -> int:
    """How many items it holds."""
    # In a tuple at the top there are inputs and labels, not items.
    readings = _common(batch) if type(batch) is tuple else _readings(batch)
    if readings is None:
        readings = sorted(_flat_lengths(batch))
        if len(readings) > 1:
            raise CannotCut(f"a batch whose items can be told apart is needed, and this has lists of {readings}")
    if not readings:
        sizes = sorted({int(leaf.shape[0]) for leaf in leaves(batch) if is_array(leaf) and len(leaf.shape)})
        told = f"tensors of {sizes} items" if sizes else "no tensor"
        raise CannotCut(f"a batch whose items can be told apart is needed, and this has {told}")
    return readings[0]


def parts(batch: Any, whole: int, size: int) -> Iterator[Any]:
    """One after the other, none larger than `size`, and all nearly as large."""
    if size >= whole:
        yield batch
        return
    number = math.ceil(whole / size)
    edges = [whole * index // number for index in range(number + 1)]
    for begin, end in zip(edges, edges[1:]):
        yield _cut(batch, whole, slice(begin, end))


def fresh(batch: Any) -> Any:
    """The same tensors in containers of their own: what takes something out of them, or puts it in, does no harm."""
    return rebuilt(batch, fresh)


def leaves(batch: Any) -> Iterator[Any]:
    """All that is no container."""
    if is_array(batch):
        yield batch
        return
    within = batch if isinstance(batch, (list, tuple)) else _fields(batch)
    if within is None:
        yield batch
    else:
        for value in within:
            yield from leaves(value)


def is_array(thing: Any) -> bool:
    return hasattr(thing, "shape") and hasattr(thing, "__getitem__")


def rebuilt(batch: Any, change: Callable[[Any], Any]) -> Any:
    """A container like it, of what it holds as `change` returns it; what is no container as it is."""
    if is_array(batch):
        return batch
    if type(batch) is dict:
        return {key: change(value) for key, value in batch.items()}
    if _is_mapping(batch):
        # Some cannot be made from what they hold, as a defaultdict.
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
            # Frozen ones as well.
            object.__setattr__(new, field.name, change(getattr(batch, field.name)))
        return new
    return batch


def _is_mapping(thing):
    return hasattr(thing, "items") and hasattr(thing, "keys")


def _is_dataclass(thing):
    return dataclasses.is_dataclass(thing) and not isinstance(thing, type)


def _fields(batch):
    """What a container holds by name: inputs, labels, and so on. None if it is none."""
    if _is_mapping(batch):
        return list(batch.values())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return list(batch)
    if _is_dataclass(batch) and not isinstance(batch, (list, tuple)):
        return [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    return None


def _readings(batch) -> Optional[List[int]]:
    """How many items it may hold, the likeliest number first. None where it does not tell."""
    if is_array(batch):
        if getattr(batch, "is_nested", False):
            return []
        return [int(batch.shape[0])] if len(batch.shape) else None
    if hasattr(batch, "batch_sizes"):
        # A PackedSequence: items lie across each other.
        return []
    if _fields(batch) is not None:
        return _common(_fields(batch))
    if isinstance(batch, (list, tuple)):
        as_fields = _common(batch)
        if as_fields is None or not _are_alike(batch):
            return as_fields
        if isinstance(batch, list) and (not as_fields or len(batch) > as_fields[0] or _are_images(batch)):
            return [len(batch), *as_fields]
        return [*as_fields, len(batch)]
    return [] if any(map(is_array, getattr(batch, "__dict__", {}).values())) else None


def _common(values):
    common = None
    for readings in map(_readings, values):
        if readings is not None:
            common = readings if common is None else [number for number in common if number in readings]
    return common


def _are_alike(values):
    """As the items of a batch are. Inputs and labels often differ."""
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
    return all(is_array(value) and len(value.shape) == 3 and value.shape[0] <= _COLOURS for value in values)


def _flat_lengths(batch):
    """Of lists, where there are no tensors."""
    if _fields(batch) is not None:
        return set().union(*map(_flat_lengths, _fields(batch)))
    if isinstance(batch, (list, tuple)):
        return set().union(*map(_flat_lengths, batch)) or {len(batch)}
    return set()


def _cut(batch, whole, part):
    if is_array(batch):
        return batch[part] if len(batch.shape) else batch
    if type(batch) in (list, tuple) and len(batch) == whole:
        as_fields = _common(batch)
        if as_fields is None or whole not in as_fields:
            if type(batch) is tuple and all(isinstance(value, (int, float)) for value in batch):
                raise CannotCut(f"of a tuple of {whole} numbers it cannot be told whether each is of one item")
            return batch[part]
        if type(batch) is list and _are_alike(batch):
            raise CannotCut(f"of a list of {whole} tensors of {whole} it cannot be told whether each is one item")
    if not isinstance(batch, (str, bytes)) and not _is_container(batch) and hasattr(batch, "__len__"):
        raise CannotCut(f"it is not known how to cut a {type(batch).__name__}")
    return rebuilt(batch, lambda value: _cut(value, whole, part))


def _is_container(batch):
    return isinstance(batch, (list, tuple)) or _fields(batch) is not None
