"""Who holds the memory: which names of the script, on which lines, and which of them grow.

A look begins at what the script itself can name: the locals of its running functions, the globals of its
modules, closures, and from there what those hold, a few steps deep and a few thousand objects wide. It
takes some milliseconds, where asking the garbage collector takes seconds and finds neither arrays nor
graphs. Two looks tell what grows in between; what no name holds is told as such.
"""

import collections
import os
import sys
import sysconfig
import time
import types

from . import report
from .growth import lines_that_grow

# Bounds of one look.
DEPTH = 4
OBJECTS = 20_000
# Elements of a container that stand for all of them.
SAMPLE = 32
# Containers up to this long are looked into one by one.
SHORT = 64
# Steps of a graph that are followed.
NODES = 5_000
# Looks may take this part of the time, when all is well and when memory runs short;
SHARE, SHARE_IN_NEED = 0.002, 0.02
# seconds between two of them: at first, at most, and at least.
FIRST, CALM, SOON = 2.0, 60.0, 0.4
# Seconds for which later looks at a name are compared with the same one.
BASE = 30.0
# Names that are told.
MOST = 5
# Growth between two looks that is worth a word, in bytes and in nodes of graphs.
BYTES, GRAPH = 100_000, 20
# The rung from which on the guard is worried.
WATCH_RUNG = 1

_CONTAINERS = (list, dict, set, frozenset, tuple, collections.deque)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), range, slice)
_NO_HOLDERS = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, types.GeneratorType)
_OPTIMIZED = 0x1
_READERS = {"locals", "vars", "dir", "eval", "exec"}
_LIBRARIES = tuple(
    os.path.join(folder, "")
    for folder in {
        os.path.realpath(path)
        for path in map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
        if path
    }
)
_OURS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class Holding(collections.namedtuple("Holding", "file scope length bytes nodes")):
    """What one name holds."""


class Seen(collections.namedtuple("Seen", "step time resident bytes nodes")):
    """What a name held when it was first looked at, and when that was."""


class Watch:
    """Looks now and then, and tells what has grown."""

    def __init__(self):
        self._looked = time.monotonic()
        self._took = 0.0
        self._interval = FIRST
        self._seen = {}

    def step(self, step, rung, frame=None):
        interval = self._interval
        if rung >= WATCH_RUNG:
            # The first look in need is worth nothing without a second.
            in_need = max(SOON, self._took / SHARE_IN_NEED) if self._seen else 0.0
            interval = min(interval, in_need)
        if time.monotonic() - self._looked >= interval:
            self.look(step, frame or sys._getframe(1))

    def look(self, step, frame):
        began = time.monotonic()
        with report.safely("looking who holds the memory"):
            found, most = look(frame), at_most()
            for path, held in found.items() if most else ():
                found[path] = held._replace(bytes=min(held.bytes, most))
            self._tell(step, began, resident(), found)
        self._looked = time.monotonic()
        self._took = self._looked - began
        self._interval = min(max(2 * self._interval, self._took / SHARE), CALM)

    def _tell(self, step, now, resident, found):
        seen = {}
        for path, held in found.items():
            fresh = Seen(step, now, resident, held.bytes, held.nodes)
            # What comes and goes within a step matters less, the longer it is since.
            then = self._seen.get(path)
            seen[path] = fresh if then is None or now - then.time > BASE else then
        names = grown(self._seen, found) or largest(found)
        told = []
        for path, held, more, nodes in names[:MOST]:
            then = self._seen.get(path) or seen[path]
            told.append(
                _told(path, held) | {
                    "grown": more, "new_nodes": nodes, "steps": step - then.step,
                    "seconds": round(now - then.time, 3), "more": resident - then.resident,
                }
            )
        self._seen = seen
        report.tell("holders", step=step, resident=resident, names=told)


def look(frame):
    """Name → what it holds, from a frame of the script outwards."""
    todo = collections.deque(_roots(frame))
    found, seen = {}, set()
    while todo and len(seen) < OBJECTS:
        path, value, file, scope, depth = todo.popleft()
        if isinstance(value, _PLAIN) or isinstance(value, _NO_HOLDERS) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            todo.extend(_closure(path, value, depth))
        elif isinstance(value, type):
            todo.extend(_attributes(path, value, depth))
        elif _is_tensor(value) or _is_array(value):
            found[path] = Holding(file, scope, 0, _bytes(value), _nodes(value))
        elif isinstance(value, _CONTAINERS):
            found[path] = Holding(file, scope, len(value), estimate(value, 2), _nodes_in(value))
            if depth < DEPTH and len(value) <= SHORT:
                for key, part in _items(value):
                    todo.append((f"{path}[{_shown(key)}]", part, file, scope, depth + 1))
        elif depth < DEPTH:
            own = _dict_of(value)
            if own is not None and not _is_a_library_s(type(value)):
                for key, part in list(own.items()):
                    todo.append((f"{path}.{key}", part, file, scope, depth + 1))
    return found


def grown(before, after):
    """(name, what it holds, bytes and graph nodes that came), most first."""
    changes = []
    for path, now in after.items():
        then = before.get(path)
        if then is None:
            continue
        more, nodes = now.bytes - then.bytes, now.nodes - then.nodes
        if more > BYTES or nodes > GRAPH:
            changes.append((path, now, more, nodes))
    return _foremost(changes, lambda change: change[2], lambda change: change[3])


def largest(found):
    names = [(path, held, 0, 0) for path, held in found.items() if held.bytes > BYTES or held.nodes > GRAPH]
    return _foremost(names, lambda name: name[1].bytes, lambda name: name[1].nodes)


def _foremost(names, bytes_of, nodes_of):
    """By bytes; and among the first of them who has most of the graphs, which hold what is not counted.
    What holds a thing that grows grows as well: of two names that are alike the deeper one is meant."""
    names.sort(key=lambda name: (-round(bytes_of(name) / BYTES, 1), -len(name[0])))
    keeper = max(names, key=lambda name: (nodes_of(name), len(name[0])), default=None)
    if keeper is not None and nodes_of(keeper) > GRAPH and keeper not in names[:MOST]:
        names.insert(MOST - 1, keeper)
    return names


def place_of(frame):
    """The line of the script that a frame was at, by the innermost frame that is the script's."""
    while frame is not None:
        if _is_the_script_s(frame.f_code.co_filename):
            code = frame.f_code
            return {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}
        frame = frame.f_back
    return {}


def innermost(trace):
    """The frame in which an exception was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def passes_through(trace, modules):
    """Whether an exception came out of one of these modules, by the beginnings of their names."""
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(modules):
            return True
        trace = trace.tb_next
    return False


def named(frame, kinds):
    """(name, thing), for things of these kinds that the script has a name for, the shortest of each."""
    seen = set()
    todo = [(path, value, depth) for path, value, _, _, depth in _roots(frame)]
    while todo:
        after = []
        for path, value, depth in todo:
            if id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, kinds):
                yield path, value
            elif depth < 2 and isinstance(value, (list, tuple, dict)) and len(value) <= SHORT:
                after += [(f"{path}[{_shown(key)}]", part, depth + 1) for key, part in _items(value)]
            elif depth < 2 and not isinstance(value, (type, types.ModuleType)):
                own = _dict_of(value) or {}
                after += [(f"{path}.{key}", part, depth + 1) for key, part in list(own.items())]
        todo = after


def _told(path, held):
    name = path.split("[")[0].split(".")[-1]
    return {
        "name": path, "file": held.file, "scope": held.scope, "bytes": held.bytes, "length": held.length,
        "nodes": held.nodes, "lines": lines_that_grow(held.file, name, held.scope),
    }


def _roots(frame):
    modules = set()
    while frame is not None:
        code = frame.f_code
        if _is_the_script_s(code.co_filename):
            if code.co_flags & _OPTIMIZED:
                for name, value in _locals(frame):
                    yield name, value, code.co_filename, code.co_name, 0
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                yield from _globals(frame.f_globals, code.co_filename, "")
        frame = frame.f_back
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        own = getattr(module, "__dict__", None)
        if isinstance(file, str) and isinstance(own, dict) and id(own) not in modules:
            if _is_the_script_s(file):
                modules.add(id(own))
                yield from _globals(own, file, module.__name__ + ".")


def _locals(frame):
    if sys.version_info >= (3, 13):
        return list(frame.f_locals.items())
    # Before, the names of a function are read into a dictionary, the same that `locals()` gives to the
    # script: one that asks for it is left alone.
    if not _READERS.isdisjoint(frame.f_code.co_names):
        return []
    own = frame.f_locals
    items = list(own.items())
    # The frame would keep it, and with it what the function has let go of since.
    own.clear()
    return items


def _globals(own, file, prefix):
    for name, value in list(own.items()):
        if not name.startswith("__"):
            yield prefix + name, value, file, "<module>", 0


def _closure(path, function, depth):
    code = function.__code__
    if _is_the_script_s(code.co_filename) and depth < DEPTH:
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                yield name, cell.cell_contents, code.co_filename, code.co_name, depth + 1
            except ValueError:
                pass


def _attributes(path, cls, depth):
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and _is_the_script_s(file) and depth < DEPTH:
        for name, value in list(vars(cls).items()):
            if isinstance(value, _CONTAINERS):
                yield f"{cls.__name__}.{name}", value, file, cls.__name__, depth + 1


def _dict_of(value):
    """The attributes of an object, without asking it: it may be a stand-in that does something when asked."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _shown(key):
    """A key, as long as to show it runs no code of the script."""
    return f"{key!r:.30}" if isinstance(key, (str, int)) else "…"


def _items(value):
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _some_of(value):
    """Elements that stand for all, from all over a container that knows where they are."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (list, tuple)):
        return value[:: max(1, len(value) // SAMPLE)][:SAMPLE]
    return [part for _, part in zip(range(SAMPLE), value)]


def estimate(value, depth, seen=None):
    """Bytes, from some of the elements. What is held twice is there once: small numbers, views of one storage."""
    seen = set() if seen is None else seen
    if isinstance(value, _CONTAINERS) and depth:
        some = _some_of(value)
        if not some:
            return sys.getsizeof(value)
        total = 0
        for part in some:
            mark = _storage(part) or id(part)
            if mark not in seen:
                seen.add(mark)
                total += estimate(part, depth - 1, seen)
        return sys.getsizeof(value) + int(total / len(some) * len(value))
    own = _dict_of(value) if depth and not isinstance(value, _PLAIN) else None
    if own is not None and not (_is_tensor(value) or _is_array(value) or isinstance(value, type)):
        return sys.getsizeof(value, 64) + estimate(own, depth - 1, seen)
    return _bytes(value)


def _is_a(value, *kinds):
    """Of a class of a framework that has been imported: (module, class), …"""
    for module, name in kinds:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return True
    return False


def _is_tensor(value):
    return _is_a(value, ("torch", "Tensor"))


def _is_array(value):
    return _is_a(value, ("numpy", "ndarray"), ("jax", "Array"), ("tensorflow", "Tensor"), ("tensorflow", "Variable"))


def _bytes(value):
    if _is_tensor(value):
        return value.untyped_storage().nbytes()
    if _is_array(value):
        base = getattr(value, "base", None)
        own = getattr(base if _is_array(base) else value, "nbytes", None)
        # TensorFlow's know their shape only.
        return own if isinstance(own, int) else value.dtype.size * (value.shape.num_elements() or 0)
    return sys.getsizeof(value, 64)


def _storage(value):
    return value.untyped_storage().data_ptr() if _is_tensor(value) else None


def _nodes(value):
    """Of the graph behind a tensor."""
    node = getattr(value, "grad_fn", None)
    if node is None:
        return 0
    seen, todo = {node}, [node]
    while todo and len(seen) < NODES:
        for after, _ in todo.pop().next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)


def _nodes_in(value):
    some = _some_of(value)[:4]
    counts = [_nodes(part) for part in some if _is_tensor(part)]
    return int(sum(counts) / len(some) * len(value)) if counts else 0


def _is_the_script_s(file):
    if file.startswith("<"):
        # A cell of a notebook, or what was given with -c.
        return file.startswith("<ipython-input") or file in ("<string>", "<stdin>")
    file = os.path.realpath(file) if not os.path.isabs(file) else file
    return not file.startswith(_LIBRARIES) and not file.startswith(_OURS) and "site-packages" not in file


def _is_a_library_s(cls):
    """Classes of frameworks are not opened, but for what people derive of them."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or not _is_the_script_s(file)


def at_most():
    """Bytes that the names of this process can hold: what it has, in memory or swapped out. None where graphics cards
    have a part of it."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return None
    with open("/proc/self/status", "rb") as file:
        sizes = [int(line.split()[1]) for line in file if line.startswith((b"VmRSS:", b"VmSwap:"))]
    return 1024 * sum(sizes) or None


def resident():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
