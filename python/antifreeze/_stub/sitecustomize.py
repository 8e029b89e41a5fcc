"""Loads the shim of antifreeze when a framework is imported. Python finds this module through PYTHONPATH.

Every Python may execute it, also Python 2, where it only runs the sitecustomize that it hides. So it uses no newer syntax.
It runs at every start of an interpreter, so it does little: it waits for a framework to be imported.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The folder of the package `antifreeze`, for interpreters that have none installed.
LIBRARY = os.path.join(os.path.dirname(HERE), "library")
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "numpy", "lightning", "pytorch_lightning", "transformers")


class Watcher(object):
    """A finder that notices the import of a framework and calls the shim after it. Other finders find the module."""

    def __init__(self):
        self.waiting = set(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                # Finding a module does not import it, so it stays in `waiting` until it was executed.
                hook_execution(spec, self.waiting)
                return spec
        return None


class Library(object):
    """Finds the package `antifreeze` beside this stub if none is installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "antifreeze":
            return None
        folder = os.path.join(LIBRARY, name)
        return sys.modules["_frozen_importlib_external"].spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


def hook_execution(spec, waiting):
    """Calls the shim after the module was executed."""
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module):
        del loader.exec_module
        execute(module)
        waiting.discard(module.__name__)
        notify_shim(module.__name__)

    # Python removes frames of this file name from the traceback of a failed import.
    name = "<frozen importlib._bootstrap>"
    exec_module.__code__ = exec_module.__code__.replace(co_filename=name)
    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def notify_shim(name):
    try:
        from antifreeze import _shim

        _shim.observe_framework(name)
    except Exception:
        # An error must not reach the script. The shim has logged it if it could.
        pass


def run_hidden_sitecustomize():
    """Imports the sitecustomize that this one hides, as Python would without it."""
    this = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as error:
        # Python ignores a missing sitecustomize, but not an error in it.
        if getattr(error, "name", __name__) != __name__:
            raise
    finally:
        if this is not None:
            sys.modules.setdefault(__name__, this)


def install():
    # The script and its workers see the path as it was before.
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    if sys.version_info >= (3, 9) and os.environ.get("ANTIFREEZE_PAGE"):
        sys.meta_path.insert(0, Watcher())
        sys.meta_path.append(Library)


# Not when another module imports it for its functions.
if __name__ == "sitecustomize":
    try:
        install()
    except Exception:
        pass
    run_hidden_sitecustomize()
