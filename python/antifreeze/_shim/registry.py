"""What the script and its framework registered with antifreeze."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .._callbacks import CheckpointOwner

# The function that the script gave to `antifreeze.on_checkpoint`. It saves the run, and may return the path.
on_checkpoint = None  # type: Optional[Callable[[], Any]]
# Name → weak reference to an object that the script gave to `antifreeze.resume`. Checkpoints use these names, whatever
# the frame that fails calls the object.
resumable = {}  # type: Dict[str, Any]
# Whether `antifreeze.resume` has returned. Before that, the script's objects are not yet in the state of the
# checkpoint.
has_resumed = False
# The framework's callback that saves in its own format. While it is set, the shim writes no checkpoint of its own kind.
checkpoint_owner = None  # type: Optional[CheckpointOwner]


def may_interrupt(frame):
    """Whether an exception may be raised in the middle of the code of this frame."""
    return True


# The message of the `MemoryPressure` that ends a script.
stop_message = "antifreeze asks this run to end: it has almost used up its memory"
