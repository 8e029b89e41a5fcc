"""Lets antifreeze see the training that runs in this interpreter. Found through PYTHONPATH.

Any Python may read this, Python 2 too: nothing here is newer than that, and there it only makes way
for the sitecustomize that it hides. It is read at every start of an interpreter, so it does next to
nothing: it waits for a framework to be imported.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# Where the package is that does the rest, when nobody has installed one.
LIBRARY = os.path.join(os.path.dirname(HERE), "library")
FRAMEWORKS = ("torch", "tensorflow", "keras", "jax", "numpy", "lightning", "pytorch_lightning", "transformers")


class Watcher(object):
    """A finder that finds nothing itself: it learns that a framework is being imported, and has the
    shim look at it when it is there."""

    def __init__(self):
        self.waiting = set(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find and finder is not self else None
            if spec is not None:
                # Asking where it is does not import it: it may be asked for again.
                observe(spec, self.waiting)
                return spec
        return None


class Library(object):
    """Finds our own package where nothing else of its name is installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "antifreeze":
            return None
        folder = os.path.join(LIBRARY, name)
        return sys.modules["_frozen_importlib_external"].spec_from_file_location(
            name, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )


def observe(spec, waiting):
    """Has the shim look at the module when it has been executed."""
    loader = spec.loader
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return

    def exec_module(module):
        del loader.exec_module
        execute(module)
        waiting.discard(module.__name__)
        attend(module.__name__)

    # A traceback of a failed import leaves out the importer's own frames. This is one of them.
    name = "<frozen importlib._bootstrap>"
    exec_module.__code__ = exec_module.__code__.replace(co_filename=name)
    try:
        loader.exec_module = exec_module
    except AttributeError:
        pass


def attend(name):
    try:
        from antifreeze import _shim

        _shim.attend(name)
    except Exception:
        # Whatever it was, the script must not suffer for it; what can be said of it is in the report.
        pass


def make_way():
    """Runs the sitecustomize that this one hides, as if this one were not there."""
    this = sys.modules.pop(__name__, None)
    try:
        __import__(__name__)
    except ImportError as error:
        # site ignores that there is none, but not what goes wrong in one.
        if getattr(error, "name", __name__) != __name__:
            raise
    finally:
        if this is not None:
            sys.modules.setdefault(__name__, this)


def begin():
    # What the script sees and what its workers inherit is as it was before.
    sys.path[:] = [entry for entry in sys.path if entry != HERE]
    if sys.version_info >= (3, 9) and os.environ.get("ANTIFREEZE_PAGE"):
        sys.meta_path.insert(0, Watcher())
        sys.meta_path.append(Library)


# Not when it is only read for what is in it.
if __name__ == "sitecustomize":
    try:
        begin()
    except Exception:
        pass
    make_way()
