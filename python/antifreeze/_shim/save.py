"""Saves a training that was not asked whether it can be saved: every model and optimizer in use, under
the names the script has for them, in a file that `torch.load` opens as it is.

    {"antifreeze": 1, "step": 120,
     "models": {"model": {…}}, "optimizers": {"optimizer": {…}}, "others": {"scaler": {…}},
     "random": {"torch": …, "python": …, "numpy": …, "cuda": […]}}
"""

import random
import sys

import torch

from . import checkpoints, holders, registry, training_loop
from .save_path import call_on_checkpoint, write_checkpoint
from .trainer import CannotSave

FORMAT = 1
_SCALERS = torch.amp if hasattr(torch.amp, "GradScaler") else torch.cuda.amp
_OTHERS = (torch.optim.lr_scheduler.LRScheduler, _SCALERS.GradScaler)
_WANTED = (torch.nn.Module, torch.optim.Optimizer, *_OTHERS)


def save(frame, steps):
    """Saves what is trained, seen from a frame of the script. Says where, and how much."""
    by_script = call_on_checkpoint()
    if by_script is not None:
        return by_script
    optimizers = steps.optimizers()
    trained = [one for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]]
    _refuse_what_is_spread(trained)
    # All ranks hold the same.
    if _rank():
        return {"path": None, "by": "rank 0"}
    found = _named_by_script(dict(holders.named(frame, _WANTED)))
    parts = _parts(found, optimizers, {id(parameter) for parameter in trained})
    states = {
        kind: {name: thing.state_dict() for name, thing in things.items()} for kind, things in parts.items()
    }
    step = steps.completed_iterations()
    state = {"antifreeze": FORMAT, "step": step, **states, "random": _random()}

    def write_state(temporary):
        with open(temporary, "wb") as file:
            torch.save(state, file)

    saved = write_checkpoint(checkpoints.TORCH, step, _size(states), write_state)
    names = [name for things in states.values() for name in things]
    return {**saved, "step": step, "names": names, **training_loop.report_fields(frame, names, steps.count)}


def _named_by_script(found):
    """By the names that `antifreeze.resume` will ask for, where the script has said them."""
    given = {name: reference() for name, reference in registry.resumable.items()}
    given = {name: thing for name, thing in given.items() if isinstance(thing, _WANTED)}
    known = {id(thing) for thing in given.values()}
    others = {name: thing for name, thing in found.items() if id(thing) not in known and name not in given}
    return {**given, **others}


def _refuse_what_is_spread(parameters):
    for parameter in parameters:
        if {kind.__name__ for kind in type(parameter).__mro__} & {"FlatParameter", "DTensor"}:
            raise CannotSave(
                "the model is spread over several processes; "
                "name a function that saves it with @antifreeze.on_checkpoint"
            )


def _parts(found, optimizers, trained):
    """What is saved, by the names that the script has for it."""
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
    names = {id(thing): name for name, thing in found.items()}
    return {
        "models": models,
        "optimizers": {names.get(id(one), f"optimizer {i}"): one for i, one in enumerate(optimizers)},
        "others": {name: thing for name, thing in found.items() if isinstance(thing, _OTHERS)},
    }


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
