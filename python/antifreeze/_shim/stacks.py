"""Makes the interpreter write the stacks of all threads when the guard sends a signal, and when it crashes.

`faulthandler` writes them without running Python code, so it works while a lock is held or native code runs. The dumps
are appended to `stacks-<pid>` in the run's folder.
"""

import faulthandler
import os
import signal

# A real-time signal that other programs are unlikely to use. crates/guard/src/trainers.rs sends it.
SIGNAL = signal.SIGRTMIN + 9


def install_handler():
    """Returns whether the handler was installed. It is not if the script uses the signal itself."""
    folder = os.environ.get("ANTIFREEZE_RUN")
    if not folder or signal.getsignal(SIGNAL) is not signal.SIG_DFL:
        return False
    path = os.path.join(folder, f"stacks-{os.getpid()}")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    faulthandler.register(SIGNAL, file=file, all_threads=True)
    # If the script enabled it, crashes are shown on the terminal already.
    if not faulthandler.is_enabled():
        faulthandler.enable(file=file, all_threads=False)
    return True
