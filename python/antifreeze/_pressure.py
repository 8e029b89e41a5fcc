"""The error that asks a run to stop. It has a file of its own, so that there is one class of it even after
`%reload_ext antifreeze` has executed the package's first file again."""


class MemoryPressure(MemoryError):
    """Raised at the end of a step when the guard asks the run to stop. `finally` blocks and context managers run. A
    script that catches it should save what it needs, and exit."""

    __module__ = __package__
