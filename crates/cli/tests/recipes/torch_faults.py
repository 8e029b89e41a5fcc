# Inserted before a recipe of the docs. The first three starts of the script leak memory until they are ended, the next
# four fail at other moments, and the last one runs to its end.
import os
import signal

import torch
from antifreeze._shim import page
from antifreeze._shim.trainer import get_trainer
from torch.utils.data._utils import fetch as _fetch

_MODES = ("leak", "leak", "leak", "at the wall", "between steps", "in validation", "in the save")
# Steps of a start before it fails.
_AFTER = 24
with open("starts", "a") as _file:
    _file.write("x")
_start = os.path.getsize("starts")
_mode = _MODES[_start - 1] if _start <= len(_MODES) else "well"
_first, _kept, _asked = None, [], set()


def _demand():
    """More than the budget."""
    torch.empty(1 << 29)


def _made():
    return -1 if _first is None else get_trainer().steps.count - _first


def _forward(module, inputs):
    global _first
    if not torch.is_grad_enabled():
        if _mode == "in validation" and _made() >= _AFTER:
            _demand()
        return
    if _first is None:
        _first = get_trainer().steps.count
        print(f"begins at step {_first}", flush=True)
    if _mode == "leak":
        _kept.append(torch.ones(3_000_000))
    elif _mode == "at the wall" and _made() >= _AFTER:
        _demand()
    elif _mode == "in the save" and _made() in (8, _AFTER) and _made() not in _asked:
        # As the guard asks.
        _asked.add(_made())
        get_trainer()._words[page.SAVE_ASKED] += 1


def _between(function):
    def call(*arguments, **named):
        if _mode == "between steps" and _made() >= _AFTER:
            _demand()
        return function(*arguments, **named)

    return call


def _save(*arguments, _real=torch.save, **named):
    _real(*arguments, **named)
    if len(_asked) == 2:
        os.kill(os.getpid(), signal.SIGKILL)


torch.nn.modules.module.register_module_forward_pre_hook(_forward)
_fetch._MapDatasetFetcher.fetch = _between(_fetch._MapDatasetFetcher.fetch)
torch.randn = _between(torch.randn)
torch.save = _save
