"""Has this process guarded where it was not started by `antifreeze run`: in a notebook, or a script on its own."""

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

# Seconds that a guard has to start, and to leave.
PATIENCE = 20.0
_NAMES = ("ANTIFREEZE_PAGE", "ANTIFREEZE_RUN", "ANTIFREEZE_SAVES")
_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")
_SCORE = "/proc/self/oom_score_adj"

_present: Optional[Guard] = None
_watcher: Any = None


def guard(
    budget: Optional[Size] = None, *, reserve: Optional[Size] = None, allow_swap: Optional[Size] = None,
    quiet: bool = False,
) -> Guard:
    """Has this process guarded from now on, as `antifreeze run` would have: to the end of it, or of a `with` block.
    Sizes are bytes, or written as for `antifreeze run`: "4GB" or "4G" (10**9 bytes each), "4GiB" (2**30), "20%". What
    is not given is taken from the variables and files that `antifreeze run` reads. Under `antifreeze run`, and in a
    process that a guarded one has started, this is guarded already, and nothing is done but to warn that sizes given
    here do not hold.

    >>> import antifreeze
    >>> with antifreeze.guard(budget="8GB", quiet=True):
    ...     try:
    ...         data = bytearray(20_000_000_000)
    ...     except MemoryError:
    ...         print("refused")
    refused

    A second call takes the place of the first; at the end of a `with` block the one before it stands guard again. In a
    notebook, cells then end with an exception where the kernel would have died; `%load_ext antifreeze` does the same.
    """
    words = []
    for name, value in (("--budget", budget), ("--reserve", reserve), ("--allow-swap", allow_swap)):
        words += [name, str(value)] if value is not None else []
    if (_present is None or not _present._is_ours) and os.environ.get("ANTIFREEZE_PAGE"):
        if words and not quiet and not _is_a_worker():
            warnings.warn(
                "this process is guarded already, by `antifreeze run` or the process that started it: what that may "
                f"use holds, and {' '.join(words)} does not", stacklevel=2,
            )
        return Guard(None, None)
    if quiet:
        words.append("--quiet")
    if _shell() is not None:
        words.append("--tersely")
    before = _present
    if before is not None:
        # Two at once would take each other's limits for the process's own.
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
    """A guard at work: `stop()`, or the end of a `with` block, ends it."""

    def __init__(self, words: Optional[List[str]], before: Optional[Guard]) -> None:
        self._words, self._before = words, before
        self._front: Optional[_Front] = None
        self._is_wanted = True
        self._pid = os.getpid()

    @property
    def is_on(self) -> bool:
        """False once it was stopped, and while another one stands in its place. Under `antifreeze run` it is that one's
        guard, and on to the end."""
        return self._words is None or self._front is not None and self._front.is_on

    def stop(self) -> None:
        """From now on this process goes unguarded."""
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
                warnings.warn(f"this process goes unguarded from now on: {reason}", stacklevel=2)

    @property
    def _is_ours(self):
        """Not of the process that this one was forked from."""
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
    """The program beside us, and what it said at its start."""

    def __init__(self, words: List[str]) -> None:
        self._program = find_program()
        self._pid = os.getpid()
        self._names: dict = {}
        self._score = _read(_SCORE)
        self._process = subprocess.Popen(
            [self._program, "attach", "--tether", *words, str(self._pid)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Neither Ctrl-C nor the interruption of a cell is meant for it.
            start_new_session=True,
        )
        self.is_on = True
        try:
            said = self._first_word()
            self._page = said.get("page", "")
            self._check()
            self.may_use: int = said["may_use"]
            self._names.update(zip(_NAMES, (self._page, said["run"], os.path.join(said["run"], "saves"))))
            os.environ.update(self._names)
            emergency_limit.raise_bytes = said["strip"]
            _attend()
        except BaseException:
            self.leave(0)
            raise
        atexit.register(self._end)

    def _first_word(self):
        output = self._process.stdout
        readable, _, _ = select.select([output], [], [], PATIENCE)
        line = output.readline() if readable else b""
        output.close()
        if not line:
            self._process.stdin.close()
            self._wait()
            status = self._process.returncode
            raise RuntimeError(f"the guard did not start: `antifreeze attach` ended with status {status}")
        said = json.loads(line)
        if "error" in said:
            self._process.stdin.close()
            self._wait()
            raise RuntimeError(f"the guard did not start: {said['error']}")
        return said

    def _check(self):
        """Without a page that we understand, nothing that the guard asks for would reach us."""
        version = page.read_version(self._page)
        if version is None:
            raise RuntimeError(f"the guard's page cannot be read: {self._page!r}")
        if version != page.VERSION:
            ran = subprocess.run([self._program, "--version"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
            named = ran.stdout.decode("utf-8", "replace").strip()
            package = os.path.dirname(os.path.abspath(__file__))
            raise RuntimeError(
                f"the program {self._program} ({named}, page {version}) and this package ({package}, page "
                f"{page.VERSION}) do not fit together; install both from one version"
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
            # It has ended before us.
            pass
        if is_there:
            self._wait()
        elif self._names:
            self._end_the_guard(status)

    def _wait(self):
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # It stands guard for nobody, and harms nobody.
            pass

    def _end_the_guard(self, status):
        """As the program would, had it not been killed: its guard goes on without it."""
        if page.release_guard(self._page, self._process.pid, status):
            until = time.monotonic() + PATIENCE
            while page.read_version(self._page) is not None and time.monotonic() < until:
                time.sleep(0.02)
        try:
            with open(_SCORE, "w") as file:
                file.write(self._score)
        except OSError:
            pass

    def _end(self):
        # The error of a cell, which `last_value` is in a notebook, is not why its kernel ends.
        failed = _shell() is None and getattr(sys, "last_value", None) is not None
        self.leave(1 if failed else 0)


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _is_a_worker():
    """One that runs the script's first lines once more."""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def find_program() -> str:
    """Where `antifreeze` is: beside this package, as it was installed, or on the path."""
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


def _attend():
    """Has the shim look at the frameworks that are here, and at those that will be imported."""
    global _watcher
    from . import _shim
    from ._shim.trainer import get_trainer

    if not get_trainer().attach_to_page():
        warnings.warn(
            "SIGURG is in use outside of Python, so that antifreeze cannot interrupt what fills the memory; large "
            "requests are still refused", stacklevel=5,
        )
    if _watcher is not None:
        return
    from ._stub import sitecustomize

    _watcher = sitecustomize.Watcher()
    for name in _FRAMEWORKS:
        if name in sys.modules:
            _watcher.waiting.discard(name)
            _shim.attend(name)
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
    """Of IPython, if this runs in one."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def leave() -> None:
    """Ends the guard that we started, if there is one."""
    if _present is not None:
        _present.stop()


def is_guarded() -> bool:
    return _present is not None or bool(os.environ.get("ANTIFREEZE_PAGE"))


def may_use() -> Optional[int]:
    """Bytes, where a guard that we started stands; None elsewhere."""
    return _present._front.may_use if _present is not None and _present._front is not None else None
