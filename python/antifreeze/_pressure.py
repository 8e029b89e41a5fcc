"""The error by which a run is asked to end: in a file of its own, so that there is one class of it, also after
`%reload_ext antifreeze` has run the package's first file once more."""


class MemoryPressure(MemoryError):
    """Raised at the end of a step when the guard asks the run to end. What is in `finally` blocks and
    context managers runs; a script that catches it should save what it wants to keep, and end."""

    __module__ = __package__
