"""What the script has asked to be called, and who else has a word in what is done to it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

# Saves the run, and may return where.
on_checkpoint = None  # type: Optional[Callable[[], Any]]
# A callback of the framework saves when it is asked to, at the end of its step.
saves_itself = False


def may_stop(frame):
    """Whether an exception may be raised in the middle of what is at this frame."""
    return True


# What is said to a script that has to end.
ending = "antifreeze asks this run to end: memory is running out, and it would freeze the machine"
