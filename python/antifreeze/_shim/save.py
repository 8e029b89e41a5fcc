"""Saves a training that was not asked whether it can be saved: every model and optimizer in use, under
the names the script has for them, in a file that `torch.load` opens as it is.

    {"antifreeze": 1, "step": 120,
     "models": {"model": {…}}, "optimizers": {"optimizer": {…}}, "others": {"scaler": {…}},
     "random": {"torch": …, "python": …, "numpy": …, "cuda": […]}}
"""

import os
import random
import sys

import torch

from . import holders, hooks

FORMAT = 1
# Kept free on the disk beside what is written.
SPARE = 64 << 20


class CannotSave(Exception):
    """Why not, for the person."""


class Snapshot:
    """What there is to save, and how."""

    def __init__(self, parts, step):
        self._parts, self._step = parts, step

    @classmethod
    def of(cls, frame, steps):
        return cls(_parts(frame, steps.optimizers()), steps.count)

    def save(self):
        """Where it was saved, at which step, and how much."""
        if hooks.on_checkpoint is not None:
            path = hooks.on_checkpoint()
            return {"path": path if isinstance(path, str) else None, "step": self._step, "by": "script"}
        rank = _rank()
        if rank:
            return {"path": None, "step": self._step, "by": "rank 0"}
        folder = os.environ.get("ANTIFREEZE_SAVES")
        if not folder:
            raise CannotSave("there is no folder for it")
        os.makedirs(folder, exist_ok=True)
        size = sum(_size(state) for states in self._parts.values() for state in states.values())
        room = os.statvfs(folder)
        if room.f_bavail * room.f_frsize < size + SPARE:
            raise CannotSave(f"{size} bytes do not fit on the disk of {folder}")
        path = os.path.join(folder, f"step-{self._step}.pt")
        state = {"antifreeze": FORMAT, "step": self._step, **self._parts, "random": _random()}
        aside = f"{path}.{os.getpid()}"
        try:
            with open(aside, "wb") as file:
                torch.save(state, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, path)
        except BaseException:
            if os.path.exists(aside):
                os.unlink(aside)
            raise
        return {"path": path, "step": self._step, "bytes": os.path.getsize(path), "by": "antifreeze"}


def _parts(frame, optimizers):
    found = dict(_named(frame))
    trained = {
        id(parameter)
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    models = {
        name: module
        for name, module in found.items()
        if isinstance(module, torch.nn.Module)
        and any(id(parameter) in trained for parameter in module.parameters())
    }
    # A part of another model is saved with it.
    inner = {id(part) for module in models.values() for part in list(module.modules())[1:]}
    models = {name: module for name, module in models.items() if id(module) not in inner}
    if not models:
        raise CannotSave("no name of the script holds the model that is trained")
    for module in models.values():
        _refuse_what_is_spread(module)
    others = {
        name: thing
        for name, thing in found.items()
        if isinstance(thing, (torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler))
    }
    names = {id(thing): name for name, thing in found.items()}
    steppers = {names.get(id(one), f"optimizer {i}"): one for i, one in enumerate(optimizers)}
    groups = {"models": models, "optimizers": steppers, "others": others}
    return {
        group: {name: thing.state_dict() for name, thing in things.items()} for group, things in groups.items()
    }


def _refuse_what_is_spread(module):
    for part in module.modules():
        if type(part).__name__ in ("FullyShardedDataParallel", "FSDPModule"):
            raise CannotSave("the model is spread over several processes (FSDP); give a function to save it")
    for parameter in module.parameters():
        if type(parameter).__name__ == "DTensor" or type(parameter.data).__name__ == "DTensor":
            raise CannotSave("the model is spread over several processes (DTensor); give a function to save it")
        break


def _named(frame):
    """Modules, optimizers and the like that the script has a name for, the shortest name of each."""
    seen = set()
    todo = [(path, value, depth) for path, value, _, _, depth in holders._roots(frame)]
    wanted = (
        torch.nn.Module, torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler, torch.amp.GradScaler,
    )
    while todo:
        after = []
        for path, value, depth in todo:
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, wanted):
                yield path, value
            elif depth < 2 and isinstance(getattr(value, "__dict__", None), dict):
                if not isinstance(value, type) and not isinstance(value, type(sys)):
                    after += [(f"{path}.{key}", part, depth + 1) for key, part in list(vars(value).items())]
            elif depth < 2 and isinstance(value, (list, tuple, dict)) and len(value) <= holders.SHORT:
                after += [(f"{path}[{key!r}]", part, depth + 1) for key, part in holders._items(value)]
        todo = after


def _rank():
    distributed = torch.distributed
    is_spread = distributed.is_available() and distributed.is_initialized()
    return distributed.get_rank() if is_spread else 0


def _size(state):
    """Bytes of the tensors in a state, each storage once."""
    storages, todo = {}, [state]
    while todo:
        part = todo.pop()
        if isinstance(part, torch.Tensor):
            storage = part.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
        elif isinstance(part, dict):
            todo.extend(part.values())
        elif isinstance(part, (list, tuple)):
            todo.extend(part)
    return sum(storages.values())


def _random():
    state = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        kind, keys, *rest = numpy.random.get_state()
        state["numpy"] = (kind, torch.from_numpy(keys.astype("int64")), *(float(x) for x in rest))
    return state
