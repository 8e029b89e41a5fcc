"""Attaches a guard to this process: in a notebook, or in a script that was not started by `antifreeze run`."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import subprocess
import sys
import sysconfig
import time
import warnings
from typing import Any, List, Optional, Union

from ._shim import emergency_limit, page

Size = Union[int, str]

# Time that a guard has to start, and to leave.
TIMEOUT_SECONDS = 20.0
_ENVIRONMENT_NAMES = ("ANTIFREEZE_PAGE", "ANTIFREEZE_RUN", "ANTIFREEZE_SAVES")
_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")
_OOM_SCORE_PATH = "/proc/self/oom_score_adj"

_present: Optional[Guard] = None
_watcher: Any = None


def guard(
    budget: Optional[Size] = None, *, reserve: Optional[Size] = None, allow_swap: Optional[Size] = None,
    quiet: bool = False,
) -> Guard:
    """Starts a guard for this process, as `antifreeze run` would, until the process or the `with` block ends.

    >>> import antifreeze
    >>> with antifreeze.guard(budget="8GB", quiet=True):
    ...     try:
    ...         data = bytearray(20_000_000_000)
    ...     except MemoryError:
    ...         print("refused")
    refused

    Sizes are bytes, or text as for `antifreeze run`: "4GB" or "4G" (10**9 bytes each), "4GiB" (2**30), "20%". Sizes
    that are not given come from the variables and files that `antifreeze run` reads. In a process that is guarded
    already, nothing changes, and sizes given here cause a warning.

    A second call replaces the first guard; at the end of a `with` block the earlier one starts again. In a notebook,
    a cell that runs out of memory ends with an exception; `%load_ext antifreeze` does the same.

    Raises RuntimeError if the guard cannot start.
    """
    words = []
    for name, value in (("--budget", budget), ("--reserve", reserve), ("--allow-swap", allow_swap)):
        words += [name, str(value)] if value is not None else []
    if (_present is None or not _present._is_ours) and os.environ.get("ANTIFREEZE_PAGE"):
        if words and not quiet and not _is_a_worker():
            warnings.warn(
                "this process is guarded already, by `antifreeze run` or the process that started it: its sizes apply, "
                f"and {' '.join(words)} is ignored", stacklevel=2,
            )
        return Guard(None, None)
    if quiet:
        words.append("--quiet")
    if _shell() is not None:
        words.append("--tersely")
    before = _present
    if before is not None:
        # Two guards at once would take each other's limits for those of the process.
        before._leave(0)
    new = Guard(words, before)
    try:
        new._start()
    except BaseException:
        if before is not None:
            before._start()
        raise
    return new


class Guard:
    """A running guard. `stop()` or the end of a `with` block ends it."""

    def __init__(self, words: Optional[List[str]], before: Optional[Guard]) -> None:
        self._words, self._before = words, before
        self._front: Optional[_Front] = None
        self._is_wanted = True
        self._pid = os.getpid()

    @property
    def is_on(self) -> bool:
        """Whether this guard is running. False after `stop()` and while another guard replaces it. Always True under
        `antifreeze run`."""
        return self._words is None or self._front is not None and self._front.is_on

    def stop(self) -> None:
        """Stops the guard."""
        self._is_wanted = False
        self._leave(0)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        is_well = kind is None or isinstance(error, SystemExit) and error.code in (None, 0)
        self._is_wanted = False
        self._leave(0 if is_well else 1)
        before = self._before
        if _present is None and self._is_ours and before is not None and before._is_wanted:
            try:
                before._start()
            except RuntimeError as reason:
                warnings.warn(f"this process is no longer guarded: {reason}", stacklevel=2)

    @property
    def _is_ours(self):
        """False in a process that was forked since."""
        return self._pid == os.getpid()

    def _start(self):
        global _present
        self._front = _Front(self._words)
        _present = self
        _hook_notebook()

    def _leave(self, status):
        global _present
        if self._front is not None and self._front.is_on and self._is_ours:
            self._front.leave(status)
            if _present is self:
                _present = None
            _unhook_notebook()


class _Front:
    """The program `antifreeze attach` that runs beside this process, and what it reported at its start."""

    def __init__(self, words: List[str]) -> None:
        self._program = find_program()
        self._pid = os.getpid()
        self._names: dict = {}
        self._oom_score_adj = _read(_OOM_SCORE_PATH)
        self._process = subprocess.Popen(
            [self._program, "attach", "--tether", *words, str(self._pid)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C and the interruption of a cell must not reach it.
            start_new_session=True,
        )
        self.is_on = True
        try:
            started = self._read_start_message()
            self._page = started.get("page", "")
            self._check_page_version()
            self.may_use: int = started["may_use"]
            values = self._page, started["run"], os.path.join(started["run"], "saves")
            self._names.update(zip(_ENVIRONMENT_NAMES, values))
            os.environ.update(self._names)
            emergency_limit.raise_bytes = started["strip"]
            _observe_frameworks()
        except BaseException:
            self.leave(0)
            raise
        atexit.register(self._end)

    def _read_start_message(self):
        output = self._process.stdout
        readable, _, _ = select.select([output], [], [], TIMEOUT_SECONDS)
        line = output.readline() if readable else b""
        output.close()
        if not line:
            self._process.stdin.close()
            self._wait()
            status = self._process.returncode
            raise RuntimeError(f"the guard did not start: `antifreeze attach` ended with exit status {status}")
        message = json.loads(line)
        if "error" in message:
            self._process.stdin.close()
            self._wait()
            raise RuntimeError(f"the guard did not start: {message['error']}")
        return message

    def _check_page_version(self):
        """Without a page of the same version, requests of the guard would not arrive."""
        version = page.read_version(self._page)
        if version is None:
            raise RuntimeError(f"the guard's page cannot be read: {self._page!r}")
        if version != page.VERSION:
            ran = subprocess.run([self._program, "--version"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            named = ran.stdout.decode("utf-8", "replace").strip()
            package = os.path.dirname(os.path.abspath(__file__))
            raise RuntimeError(
                f"the program {self._program} ({named}, page {version}) and this package ({package}, page "
                f"{page.VERSION}) are of different versions; install both from the same version"
            )

    def leave(self, status):
        if not self.is_on or os.getpid() != self._pid:
            return
        self.is_on = False
        atexit.unregister(self._end)
        from ._shim.trainer import get_trainer

        get_trainer().detach_from_page()
        emergency_limit.raise_bytes = 0
        for name, value in self._names.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        is_there = self._process.poll() is None
        try:
            self._process.stdin.write(bytes([status]))
            self._process.stdin.close()
        except (OSError, ValueError):
            # It has ended already.
            pass
        if is_there:
            self._wait()
        elif self._names:
            self._end_guard(status)

    def _wait(self):
        try:
            self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            # A guard without a process to guard does no harm.
            pass

    def _end_guard(self, status):
        """Ends the guard in place of the program, which was killed."""
        if page.release_guard(self._page, self._process.pid, status):
            until = time.monotonic() + TIMEOUT_SECONDS
            while page.read_version(self._page) is not None and time.monotonic() < until:
                time.sleep(0.02)
        try:
            with open(_OOM_SCORE_PATH, "w") as file:
                file.write(self._oom_score_adj)
        except OSError:
            pass

    def _end(self):
        # In a notebook, `last_value` is the error of a cell, not the reason why the kernel ends.
        failed = _shell() is None and getattr(sys, "last_value", None) is not None
        self.leave(1 if failed else 0)


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _is_a_worker():
    """Whether multiprocessing started this process, which may run the script's first lines again."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def find_program() -> str:
    """Returns the path of the program `antifreeze`: where this package was installed, or on PATH."""
    folders = [sysconfig.get_path("scripts"), os.path.dirname(sys.executable)]
    if sys.version_info >= (3, 10):
        folders.append(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
    named = os.environ.get("ANTIFREEZE_BIN")
    for folder in folders:
        named = named or shutil.which("antifreeze", path=folder)
    named = named or shutil.which("antifreeze")
    if not named:
        raise RuntimeError("the program `antifreeze` was not found; it comes with `pip install antifreeze`")
    return named


def _observe_frameworks():
    """Makes the shim observe the frameworks that are imported now or later."""
    global _watcher
    from . import _shim
    from ._shim.trainer import get_trainer

    if not get_trainer().attach_to_page():
        warnings.warn(
            "SIGURG has a handler outside of Python, so antifreeze cannot interrupt code that fills the memory; large "
            "requests are still refused", stacklevel=5,
        )
    if _watcher is not None:
        return
    from ._stub import sitecustomize

    _watcher = sitecustomize.Watcher()
    for name in _FRAMEWORKS:
        if name in sys.modules:
            _watcher.waiting.discard(name)
            _shim.observe_framework(name)
    sys.meta_path.insert(0, _watcher)


def _hook_notebook():
    shell = _shell()
    if shell is not None:
        from . import _notebook

        _notebook.hook(shell)


def _unhook_notebook():
    notebook = sys.modules.get(__package__ + "._notebook")
    if notebook is not None:
        notebook.unhook()


def _shell():
    """Returns the IPython shell, or None outside of IPython."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def stop_guard() -> None:
    """Stops the guard that this process started, if there is one."""
    if _present is not None:
        _present.stop()


def is_guarded() -> bool:
    return _present is not None or bool(os.environ.get("ANTIFREEZE_PAGE"))


def may_use() -> Optional[int]:
    """Returns how many bytes the process may use, or None if it did not start a guard."""
    return _present._front.may_use if _present is not None and _present._front is not None else None
