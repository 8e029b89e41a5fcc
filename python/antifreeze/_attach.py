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
from typing import Any, List, Optional, Union

from ._shim import landing

Size = Union[int, str]

# Seconds that a guard has to start, and to leave.
PATIENCE = 20.0
_NAMES = ("ANTIFREEZE_PAGE", "ANTIFREEZE_RUN", "ANTIFREEZE_SAVES")
_FRAMEWORKS = ("torch", "tensorflow", "keras", "jax")

_present: Optional[Guard] = None
_watcher: Any = None


def guard(
    budget: Optional[Size] = None, *, reserve: Optional[Size] = None, allow_swap: Optional[Size] = None,
    quiet: bool = False,
) -> Guard:
    """Has this process guarded from now on, as `antifreeze run` would have: to the end of it, or of a `with` block.
    Sizes are bytes, or written as "4GB" and "20%"; what is not given is taken from the variables and files that
    `antifreeze run` reads. Under `antifreeze run`, this is guarded already, and nothing is done.

    >>> import antifreeze
    >>> with antifreeze.guard(budget="8GB", quiet=True):
    ...     try:
    ...         data = bytearray(20_000_000_000)
    ...     except MemoryError:
    ...         print("refused")
    refused

    A second call takes the place of the first. In a notebook, cells then end with an exception where the kernel
    would have died; `%load_ext antifreeze` does the same.
    """
    global _present
    words = []
    for name, value in (("--budget", budget), ("--reserve", reserve), ("--allow-swap", allow_swap)):
        words += [name, str(value)] if value is not None else []
    if quiet:
        words.append("--quiet")
    if _shell() is not None:
        words.append("--tersely")
    if _present is not None:
        leave()
    elif os.environ.get("ANTIFREEZE_PAGE"):
        return Guard(None)
    _present = Guard(_Front(words))
    _hook_notebook()
    return _present


class Guard:
    """A guard at work: `stop()`, or the end of a `with` block, ends it."""

    def __init__(self, front: Optional[_Front]) -> None:
        self._front = front

    @property
    def is_on(self) -> bool:
        """False once it was stopped. Under `antifreeze run` it is that one's guard, and on to the end."""
        return self._front is None or self._front.is_on

    def stop(self) -> None:
        """From now on this process goes unguarded."""
        self._leave(0)

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._leave(0 if kind is None else 1)

    def _leave(self, status):
        global _present
        if self._front is not None and self._front.is_on:
            self._front.leave(status)
            if _present is self:
                _present = None
            _unhook_notebook()


class _Front:
    """The program beside us, and what it said at its start."""

    def __init__(self, words: List[str]) -> None:
        program = find_program()
        self._pid = os.getpid()
        self._process = subprocess.Popen(
            [program, "attach", "--tether", *words, str(self._pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            # Neither Ctrl-C nor the interruption of a cell is meant for it.
            start_new_session=True,
        )
        said = self._first_word()
        self.is_on = True
        self.may_use: int = said["may_use"]
        self._names = dict(zip(_NAMES, (said["page"], said["run"], os.path.join(said["run"], "saves"))))
        os.environ.update(self._names)
        landing.strip = said["strip"]
        _attend()
        atexit.register(self._end)

    def _first_word(self):
        output = self._process.stdout
        readable, _, _ = select.select([output], [], [], PATIENCE)
        line = output.readline() if readable else b""
        output.close()
        if not line:
            self._process.stdin.close()
            status = self._process.wait(PATIENCE)
            raise RuntimeError(f"the guard did not start: `antifreeze attach` ended with status {status}")
        return json.loads(line)

    def leave(self, status):
        if not self.is_on or os.getpid() != self._pid:
            return
        self.is_on = False
        atexit.unregister(self._end)
        from ._shim.trainer import trainer

        trainer().leave()
        landing.strip = 0
        for name, value in self._names.items():
            if os.environ.get(name) == value:
                del os.environ[name]
        try:
            self._process.stdin.write(bytes([status]))
            self._process.stdin.close()
        except OSError:
            # It has ended before us.
            pass
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # It stands guard for nobody, and harms nobody.
            pass

    def _end(self):
        failed = getattr(sys, "last_value", None) is not None
        self.leave(1 if failed else 0)


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
    from ._shim.trainer import trainer

    trainer().join()
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
