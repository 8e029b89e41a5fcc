"""How people use it, for a type checker: `mypy --strict typed.py` finds nothing."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

import antifreeze


def forward(batch: Any) -> Any:
    return batch.sum(), len(batch)


@antifreeze.splittable
def whole(batch: Any) -> Any:
    return batch.sum(), len(batch)


@antifreeze.splittable(batch_norm="warn")
def warned(batch: Any) -> Any:
    return batch.sum(), len(batch)


@antifreeze.on_checkpoint
def save() -> str:
    return "last.pt"


def main(batches: List[Any]) -> None:
    functions: List[Callable[[Any], Any]] = [whole, warned]
    losses: antifreeze.RollingBuffer = antifreeze.RollingBuffer(100, bytes=1_000_000)
    with antifreeze.guard(budget="8GB", reserve=1_000_000_000) as guard, antifreeze.phase("evaluation"):
        is_on: bool = guard.is_on
    step: int = antifreeze.resume(model=object())
    path: Optional[str] = antifreeze.last_save()
    size: int = antifreeze.find_batch_size(lambda size: None, start=step + 1)
    for batch in antifreeze.wrap(batches, warn=is_on):
        losses.append(antifreeze.check_finite(antifreeze.step(forward, batch, items=len)))
        functions[size % 2](batch)
    print(path, save())
