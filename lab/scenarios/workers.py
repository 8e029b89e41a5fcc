"""Worker processes, as a data loader has them."""

import os
import signal

OUT_OF_MEMORY = 3


def start(work):
    """Forks a worker that does `work` and ends; the process id."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Whatever happens in a worker, it must not go on as a second parent.
    code = 1
    try:
        work()
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY
    finally:
        os._exit(code)


def wait(pid):
    """Waits for a worker; a MemoryError if it was refused memory, as if it had come here."""
    _judge(pid, os.waitpid(pid, 0)[1])


def look(pids):
    """The workers that are still at work; the others are judged as in `wait`."""
    working = []
    for pid in pids:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _judge(pid, status)
        else:
            working.append(pid)
    return working


def end(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _judge(pid, status):
    code = os.waitstatus_to_exitcode(status)
    if code == OUT_OF_MEMORY:
        raise MemoryError(f"worker {pid} ran out of memory")
    if code:
        raise RuntimeError(f"worker {pid} ended with {code}")
