"""Has the interpreter write where all of its threads are, whenever the guard asks for it by a signal, and where it
was when it crashes.

It does so itself, in the middle of whatever it is at, also while a lock is held or native code runs. What it
writes goes to `stacks-<pid>` in the run's folder: one dump after the other, as `faulthandler` has them.
"""

import faulthandler
import os
import signal

# One that nobody else is likely to use.
SIGNAL = signal.SIGRTMIN + 9


def offer():
    """Whether it will answer: not where the script has a use for the signal itself."""
    folder = os.environ.get("ANTIFREEZE_RUN")
    if not folder or signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        return False
    path = os.path.join(folder, f"stacks-{os.getpid()}")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    faulthandler.register(SIGNAL, file=file, all_threads=True)
    # Whoever has asked for it already sees it on the terminal.
    if not faulthandler.is_enabled():
        faulthandler.enable(file=file, all_threads=False)
    return True
