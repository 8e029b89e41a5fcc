"""Loads a checkpoint that `save` or `keras` wrote."""

import random
import re
import sys

_KERAS_NAME = re.compile(r"step-(\d+)\.weights\.h5$")


def restore_training(path, objects):
    """Loads the state of each object by its name, and returns the step of the checkpoint. A missing name is an error: a
    run that continued with a part of its state would be wrong without a sign of it."""
    keras_name = _KERAS_NAME.search(path)
    if keras_name:
        for model in objects.values():
            model.load_weights(path)
        return int(keras_name[1])
    return _restore_torch(path, objects)


def _restore_torch(path, objects):
    import torch

    saved = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(saved, dict) or "antifreeze" not in saved:
        raise ValueError(f"antifreeze.resume: {path} was not saved by antifreeze; pass load= to load it yourself")
    states = {**saved["models"], **saved["optimizers"], **saved["others"]}
    for name, value in objects.items():
        state = states.get(name) or _state_by_attribute(states, name)
        if state is None:
            saved_names = ", ".join(sorted(states))
            raise KeyError(f"antifreeze.resume: `{name}` is not in {path}, which has: {saved_names}")
        value.load_state_dict(state)
    _restore_random(saved["random"], torch)
    return saved["step"]


def _state_by_attribute(states, name):
    """Returns the state of `self.model` for `model`, if there is exactly one such name."""
    matches = [state for saved, state in states.items() if saved.rpartition(".")[2] == name]
    return matches[0] if len(matches) == 1 else None


def _restore_random(state, torch):
    torch.set_rng_state(state["torch"])
    version, keys, rest = state["python"]
    random.setstate((version, tuple(keys), rest))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    numpy = sys.modules.get("numpy")
    if "numpy" in state and numpy is not None:
        kind, keys, position, has_gauss, cached = state["numpy"]
        numpy.random.set_state((kind, keys.numpy().astype("uint32"), int(position), int(has_gauss), cached))
