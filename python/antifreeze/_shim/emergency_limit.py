"""Room to land in where no cushion makes it: in a process that a guard was attached to.

At the wall there may be no memory left even to handle the error. So the process raises its own limit a little,
as the cushion does under `antifreeze run`; the guard sees that, and takes it back once memory was given back.
"""

import resource

# Bytes; 0 where there is no guard, or a cushion does it.
raise_bytes = 0
_raised_to = None


def raise_limit():
    """Takes next to no memory itself."""
    global _raised_to
    if not raise_bytes:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    # Once, until the guard has moved the limit: one error after the other must not eat all there is.
    if soft != resource.RLIM_INFINITY and soft != _raised_to:
        _raised_to = soft + raise_bytes if hard == resource.RLIM_INFINITY else min(soft + raise_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (_raised_to, hard))
