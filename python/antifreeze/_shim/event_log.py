"""Writes events to `shim-<pid>.jsonl` in the run's folder: one JSON object per line, each with `what` and `t`
(CLOCK_MONOTONIC, seconds). Readers ignore fields and events they do not know. crates/diagnose/src/shim/lines.rs reads
it.

| what | fields |
|---|---|
| `hello` | a training was detected: `pid`, `framework`, `version`, `device`, `dtype`, `batch` (the loader's batch size), `python`, `shim` (version of this format) |
| `model` | `optimizer`, `parameters` (their number), `bytes` |
| `numbers` | NaN, infinity or divergence: `first` is `nan`, `inf` or `diverged`, `of` is `loss` or `gradient`; `step`, `since` (the last step with a finite loss), `value`, and the place: `file`, `line`, `function` |
| `out-of-memory` | `type`, `message`, `step`, and the script's innermost frame: `file`, `line`, `function` |
| `loaded` | a framework was imported: `name`, `version` |
| `edits` | changes to the script that make a name hold less: `name`, `file`, `edits` (see `edits`), and `shown` if `name` is not what grows |
| `batch` | after a failed request: whether a model has `batch_norm`; `file` and `edits` that call a model on parts of the samples; `size`, where the batch size is written: `line`, the text `before` and `after` the number, its `value` |
| `holders` | what holds the memory: `step`, `resident`, `held` (bytes of the process without file pages), `names` |
| `saved` | `path` (null if the script did not return one), `kind` (see `checkpoints`), `step`, `bytes`, `seconds`, `by`, the script's `names` for what was saved, and the `loop` (see `training_loop`) or `fit` with `steps_in_epoch` (null if unknown) |
| `not-saved` | `why`, `step` |
| `resumes` | the script can continue from a checkpoint: the `step` it continues from (0 for a fresh start), and the `kinds` it can load |
| `plan` | the number of `steps` that the training is meant to make |
| `split` | `antifreeze.step` splits steps: `size` items in a part, `of` so many in the batch |
| `cell` | a notebook cell: the `file` name of its code, and its `number` |
| `fault` | an error of the shim: `doing`, `error` |

Each entry of `names` has `name`, `file`, `scope`, `bytes`, `length` (of a container, else 0), `nodes` (of the graphs it
keeps) and the `lines` on which it grows. Since the name was first seen, within the last half minute: `grown` (bytes),
`new_nodes`, `steps`, `seconds`, and `more` (bytes of the process).
"""

import contextlib
import json
import os
import time

from .._pressure import MemoryPressure

VERSION = 1
# A process that writes more than this has a fault; the rest is dropped.
MAX_BYTES = 1 << 20

_file = None
_pid = None
_written = 0


def log_event(what, **fields):
    """Writes one line, or nothing if there is no run's folder."""
    global _file, _pid, _written
    folder = os.environ.get("ANTIFREEZE_RUN")
    if not folder:
        return
    if _pid != os.getpid():
        # A forked process opens its own file. The inherited descriptor has no unflushed lines.
        path = os.path.join(folder, f"shim-{os.getpid()}.jsonl")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        _file, _pid, _written = os.open(path, flags, 0o644), os.getpid(), 0
    line = json.dumps({"what": what, "t": round(time.monotonic(), 3), **fields}, allow_nan=False)
    data = line.encode("utf-8", "replace") + b"\n"
    _written += len(data)
    if _written <= MAX_BYTES:
        os.write(_file, data)


def log_fault(doing, error):
    """Reports an error of the shim."""
    with contextlib.suppress(Exception):
        log_event("fault", doing=doing, error=f"{type(error).__name__}: {error}"[:500])


@contextlib.contextmanager
def suppress_faults(doing):
    """Logs and suppresses exceptions of the block. `MemoryPressure`, which a signal may raise at any time, is meant for
    the script and passes through."""
    try:
        yield
    except MemoryPressure:
        raise
    except Exception as error:
        log_fault(doing, error)
