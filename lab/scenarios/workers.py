"""Worker processes, like those of a data loader."""

import os
import signal

OUT_OF_MEMORY_STATUS = 3


def start_worker(work):
    """Forks a worker that calls `work` and exits. Returns its process ID."""
    pid = os.fork()
    if pid:
        return pid
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Whatever happens, a worker must not continue as a second parent.
    code = 1
    try:
        work()
        code = 0
    except MemoryError:
        code = OUT_OF_MEMORY_STATUS
    finally:
        os._exit(code)


def wait_for_worker(pid):
    """Waits for a worker. Raises MemoryError if the worker was refused memory."""
    _raise_on_failure(pid, os.waitpid(pid, 0)[1])


def poll_workers(pids):
    """Returns the workers that still run. Raises as `wait_for_worker` for those that ended."""
    running = []
    for pid in pids:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _raise_on_failure(pid, status)
        else:
            running.append(pid)
    return running


def end_workers(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _raise_on_failure(pid, status):
    code = os.waitstatus_to_exitcode(status)
    if code == OUT_OF_MEMORY_STATUS:
        raise MemoryError(f"worker {pid} ran out of memory")
    if code:
        raise RuntimeError(f"worker {pid} ended with {code}")
