"""Saves a PyTorch training without code of the script: every model and optimizer in use, under the script's names for
them, in a file that `torch.load` opens.

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


def save_training(frame, steps):
    """Saves what is trained, as named in a frame of the script. Returns the fields of a `saved` event."""
    by_script = call_on_checkpoint()
    if by_script is not None:
        return by_script
    optimizers = steps.optimizers()
    trained = [one for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]]
    _refuse_sharded(trained)
    # All ranks hold the same parameters.
    if _rank():
        return {"path": None, "by": "rank 0"}
    found = _apply_script_names(dict(holders.named_objects(frame, _WANTED)))
    parts = _parts(found, optimizers, {id(parameter) for parameter in trained})
    states = {
        kind: {name: value.state_dict() for name, value in objects.items()} for kind, objects in parts.items()
    }
    step = steps.completed_iterations()
    state = {"antifreeze": FORMAT, "step": step, **states, "random": _random()}

    def write_state(temporary):
        with open(temporary, "wb") as file:
            torch.save(state, file)

    saved = write_checkpoint(checkpoints.TORCH, step, _size(states), write_state)
    names = [name for group in states.values() for name in group]
    return {**saved, "step": step, "names": names, **training_loop.report_fields(frame, names, steps.count)}


def _apply_script_names(found):
    """Uses the names that the script gave to `antifreeze.resume`, because those are loaded later."""
    given = {name: reference() for name, reference in registry.resumable.items()}
    given = {name: value for name, value in given.items() if isinstance(value, _WANTED)}
    known = {id(value) for value in given.values()}
    others = {name: value for name, value in found.items() if id(value) not in known and name not in given}
    return {**given, **others}


def _refuse_sharded(parameters):
    for parameter in parameters:
        if {kind.__name__ for kind in type(parameter).__mro__} & {"FlatParameter", "DTensor"}:
            raise CannotSave(
                "the model is sharded over several processes; "
                "give antifreeze a function that saves it, with @antifreeze.on_checkpoint"
            )


def _parts(found, optimizers, trained):
    """Groups the objects to save as {"models": {name: object}, …}."""
    models = {
        name: module
        for name, module in found.items()
        if isinstance(module, torch.nn.Module)
        and any(id(parameter) in trained for parameter in module.parameters())
    }
    # A submodule is saved with its model.
    inner = {id(part) for module in models.values() for part in list(module.modules())[1:]}
    models = {name: module for name, module in models.items() if id(module) not in inner}
    if not models:
        raise CannotSave("no variable of the script holds the model that is trained")
    names = {id(value): name for name, value in found.items()}
    return {
        "models": models,
        "optimizers": {names.get(id(one), f"optimizer {i}"): one for i, one in enumerate(optimizers)},
        "others": {name: value for name, value in found.items() if isinstance(value, _OTHERS)},
    }


def _rank():
    distributed = torch.distributed
    is_initialized = distributed.is_available() and distributed.is_initialized()
    return distributed.get_rank() if is_initialized else 0


def _size(state):
    """Returns the bytes of the tensors in a state; shared storage counts once."""
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
