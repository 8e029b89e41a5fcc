"""Puts back what `save` or `keras` has saved."""

import random
import re
import sys

_OF_KERAS = re.compile(r"step-(\d+)\.weights\.h5$")


def restore(path, things):
    """The step that it was saved at. Names that were not saved are an error: a run that goes on with half
    of what it had would look well and be wrong."""
    of_keras = _OF_KERAS.search(path)
    if of_keras:
        for thing in things.values():
            thing.load_weights(path)
        return int(of_keras[1])
    return _restore_torch(path, things)


def _restore_torch(path, things):
    import torch

    saved = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(saved, dict) or "antifreeze" not in saved:
        raise ValueError(f"antifreeze.resume: {path} was not saved by antifreeze; give a function that loads it")
    states = {**saved["models"], **saved["optimizers"], **saved["others"]}
    for name, thing in things.items():
        state = states.get(name) or _by_its_end(states, name)
        if state is None:
            known = ", ".join(sorted(states))
            raise KeyError(f"antifreeze.resume: `{name}` is not in {path}; there are: {known}")
        thing.load_state_dict(state)
    _restore_random(saved["random"], torch)
    return saved["step"]


def _by_its_end(states, name):
    """`self.model` is meant by `model`, when there is one such."""
    fitting = [state for known, state in states.items() if known.rpartition(".")[2] == name]
    return fitting[0] if len(fitting) == 1 else None


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
