"""What the script has asked to be called, and who else has a word in what is done to it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Optional

    from .._callbacks import CheckpointOwner

# Saves the run, and may return where.
on_checkpoint = None  # type: Optional[Callable[[], Any]]
# By name: weak references to what the script gave to `antifreeze.resume`. It is saved under these names, whatever a
# function that fails calls it.
resumable = {}  # type: Dict[str, Any]
# Whether `antifreeze.resume` has returned: before that, what the script holds is not what the run was saved with.
has_resumed = False
# The callback of the framework that saves in its own kind. While it does, the shim writes nothing of its own.
checkpoint_owner = None  # type: Optional[CheckpointOwner]


def may_interrupt(frame):
    """Whether an exception may be raised in the middle of what is at this frame."""
    return True


# What is said to a script that has to end.
stop_message = "antifreeze asks this run to end: it has almost used up its memory"
