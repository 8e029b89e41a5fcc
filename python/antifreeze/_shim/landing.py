"""Room to land in where no cushion makes it: in a process that a guard was attached to.

At the wall there may be no memory left even to handle the error. So the process raises its own limit a little,
as the cushion does under `antifreeze run`; the guard sees that, and takes it back once memory was given back.
"""

import resource

# Bytes; 0 where there is no guard, or a cushion does it.
strip = 0
_opened = None


def open_up():
    """Takes next to no memory itself."""
    global _opened
    if not strip:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    # Once, until the guard has moved the limit: one error after the other must not eat all there is.
    if soft != resource.RLIM_INFINITY and soft != _opened:
        _opened = soft + strip if hard == resource.RLIM_INFINITY else min(soft + strip, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (_opened, hard))
