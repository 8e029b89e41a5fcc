"""Raises the memory limit after an out-of-memory error, in a process that a guard was attached to.

At the limit there may be too little memory left to handle the error. Under `antifreeze run` the cushion raises the
limit a little; here the process does it. The guard notices, and lowers the limit again once memory was freed.
"""

import resource

# By how much the limit is raised. 0 if there is no guard, or if the cushion does it.
raise_bytes = 0
_raised_to = None


def raise_limit():
    """Raises the limit once, until the guard has changed it: repeated errors must not use up all memory."""
    global _raised_to
    if not raise_bytes:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft != resource.RLIM_INFINITY and soft != _raised_to:
        _raised_to = soft + raise_bytes if hard == resource.RLIM_INFINITY else min(soft + raise_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (_raised_to, hard))
