"""What this process has to say that does not fit into the page: a file of the run's folder, one JSON
object a line, each with `what` and `t` (CLOCK_MONOTONIC). Readers ignore what they do not know.

| what | fields |
|---|---|
| `hello` | `pid`, `framework`, `version`, `device`, `dtype`, `batch` (items, as the loader has it), `python`, `shim` |
| `model` | `optimizer`, `parameters` (how many), `bytes` |
| `numbers` | `first` `nan`, `inf` or `diverged`, `of` the `loss` or the `gradient`, `step`, `since` (the last step that was looked at and well), `value`, and the place: `file`, `line`, `function` |
| `out-of-memory` | `type`, `message`, `step`, and of the script's innermost frame `file`, `line`, `function` |
| `loaded` | a framework was imported: `name`, `version` |
| `edits` | changes to the script that make a name hold less: `name`, `file`, `edits` (see `edits`), `shown` where `name` does not say what grows |
| `batch` | of a request that failed: whether a model has `batch_norm`, `file`, `edits` that give a model its samples in parts, and `size`, where the size of a batch is written: `line`, `before` and `after` the number, its `value` |
| `holders` | who holds the memory: `step`, `resident`, `held` (of the process, without pages of files), `names` |
| `saved` | `path` (null when the script did not say), `kind` (see `checkpoints`), `step`, `bytes`, `seconds`, `by`, the script's `names` for what is in it, and of the training either the `loop` (see `loops`) or `fit`: `steps_in_epoch` (null where it is not known) |
| `not-saved` | `why`, `step` |
| `resumes` | the script can continue from a checkpoint: `step` that it continues from, 0 from the beginning, and the `kinds` that it can load |
| `plan` | `steps` that it means to make |
| `split` | `antifreeze.step` takes steps in parts: `size` items at a time, `of` the batch |
| `cell` | a cell of a notebook: the `file` that its code is named by, and its `number` |
| `fault` | an error of ours: `doing`, `error` |

Each of `names` has `name`, `file`, `scope`, `bytes`, `length` (of a container, else 0), `nodes` of graphs that it
keeps, and the `lines` on which it grows; and since it was first looked at, within the last half minute: `grown`
(bytes), `new_nodes`, `steps`, `seconds`, and `more` bytes of the process.
"""

import contextlib
import json
import os
import time

from .._pressure import MemoryPressure

VERSION = 1
# A process that has this much to say has a fault; the disk is not to suffer for it.
LONGEST = 1 << 20

_file = None
_pid = None
_written = 0


def log_event(what, **fields):
    """Writes one line. In the way of nobody: what cannot be written is lost."""
    global _file, _pid, _written
    folder = os.environ.get("ANTIFREEZE_RUN")
    if not folder:
        return
    if _pid != os.getpid():
        # A fork has its own file. The inherited one is left to its owner, unflushed lines are none.
        path = os.path.join(folder, f"shim-{os.getpid()}.jsonl")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        _file, _pid, _written = os.open(path, flags, 0o644), os.getpid(), 0
    line = json.dumps({"what": what, "t": round(time.monotonic(), 3), **fields}, allow_nan=False)
    data = line.encode("utf-8", "replace") + b"\n"
    _written += len(data)
    if _written <= LONGEST:
        os.write(_file, data)


def log_fault(doing, error):
    """An error of ours."""
    with contextlib.suppress(Exception):
        log_event("fault", doing=doing, error=f"{type(error).__name__}: {error}"[:500])


@contextlib.contextmanager
def suppress_faults(doing):
    """Whatever goes wrong within is written down and forgotten. A request to end, which a signal may bring at any time, is
    not an error of ours and reaches the script."""
    try:
        yield
    except MemoryPressure:
        raise
    except Exception as error:
        log_fault(doing, error)
