"""Who holds the memory: which names of the script, on which lines, and which of them grow.

A look begins at what the script itself can name: the locals of its running functions, the globals of its
modules, closures, and from there what those hold, a few steps deep and a few thousand objects wide. It
takes some milliseconds, where asking the garbage collector takes seconds and finds neither arrays nor
graphs. Two looks tell what grows in between; what no name holds is told as such.
"""

import collections
import dis
import functools
import gc
import math
import os
import sys
import sysconfig
import time
import types

from . import edits, event_log, notebook_cells
from .growth import lines_that_grow, shown_key, uses

# Bounds of one look.
DEPTH = 4
OBJECTS = 20_000
# Objects among which models, optimizers, loaders and datasets are searched for.
NAMED_OBJECTS = 200_000
# Objects of libraries that are looked at for those of the script.
LIBRARY_OBJECTS = 2_000
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
# Names that are told, and names whose changes to the script are told in all.
MOST, MOST_EDITED = 5, 100
# Lines that use a name, of which it is told.
USES = 3
# Growth between two looks that is worth a word, in bytes and in nodes of graphs.
BYTES, GRAPH = 100_000, 20
# The rung from which on the guard is worried.
WATCH_RUNG = 1

_CONTAINERS = (list, dict, set, frozenset, tuple, collections.deque)
_PLAIN = (str, bytes, int, float, complex, bool, type(None), range, slice)
_NO_HOLDERS = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, types.GeneratorType)
_CACHE = type(functools.lru_cache(maxsize=None)(len))
_OPTIMIZED = 0x1
# Methods in which a model computes.
_MODEL_CALLS = {"forward", "call", "__call__"}
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


class Holding(collections.namedtuple("Holding", "file scope length bytes nodes value", defaults=[None])):
    """What one name holds. The value itself is not kept beyond the look."""


class Seen(collections.namedtuple("Seen", "step time resident bytes nodes")):
    """What a name held when it was first looked at, and when that was."""


class Watch:
    """Looks now and then, and tells what has grown."""

    def __init__(self):
        self._looked = time.monotonic()
        self._took = 0.0
        self._interval = FIRST
        self._is_looking = False
        self._seen = {}
        # The changes to the script that were told, by name.
        self._edits = {}

    def step(self, step, rung, frame=None):
        interval = self._interval
        if rung >= WATCH_RUNG:
            # The first look in need is worth nothing without a second.
            in_need = max(SOON, self._took / SHARE_IN_NEED) if self._seen else 0.0
            interval = min(interval, in_need)
        if time.monotonic() - self._looked >= interval:
            self.look(step, frame or sys._getframe(1))

    def look(self, step, frame):
        # The signal that asks for a look may come during one, again and again on a slow machine.
        if self._is_looking:
            return
        self._is_looking = True
        try:
            self._look(step, frame)
        finally:
            self._is_looking = False

    def _look(self, step, frame):
        began = time.monotonic()
        with event_log.suppress_faults("looking who holds the memory"):
            found, most = look(frame), at_most()
            # What changes to the script there are is found out once, and does not count.
            self._took = time.monotonic() - began
            for path, holding in found.items() if most else ():
                found[path] = holding._replace(bytes=min(holding.bytes, most))
            self._tell(step, began, resident(), found)
        with event_log.suppress_faults("looking for changes to a pipeline"):
            self._tell_of_pipeline(frame)
        with event_log.suppress_faults("looking for changes to a dataset"):
            self._tell_of_dataset(frame)
        self._looked = time.monotonic()
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
        notebook_cells.report_new_cells()
        event_log.log_event("holders", step=step, resident=resident, held=held_by_process(), names=told)
        for path, held, *_ in names[:MOST]:
            with event_log.suppress_faults("looking for changes to the script"):
                self._tell_edits(path, held.file, edits.edits(held, path, _has_graph, resident))

    def _tell_edits(self, name, file, changes, **more):
        """Once, and again when they are others."""
        if self._edits.get(name, []) != changes and len(self._edits) < MOST_EDITED:
            self._edits[name] = changes
            event_log.log_event("edits", name=name, file=file, edits=edits.with_text_before(file, changes), **more)

    def pipeline_begins(self, dataset, frame):
        """A pipeline of tf.data is about to be read from: no Python runs while it fills its buffers."""
        with event_log.suppress_faults("looking for changes to a pipeline"):
            if "tf.data" not in self._edits:
                self._tell_of_pipeline(frame, [dataset])

    def _tell_of_pipeline(self, frame, more=()):
        dataset = pipeline_class()
        if dataset is None:
            return
        while frame is not None and not _is_the_script_s(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        sets = [*dict(named(frame, (dataset,))).values(), *more]
        each = max((_bytes_of_sample(dataset) for dataset in sets), default=0)
        fits = edits.round_down(min(resident() / 20 / each, 1000)) if each else 100
        file = frame.f_code.co_filename
        totals = [_bytes_of_set(dataset) for dataset in sets]
        is_small = totals and all(total is not None and total < resident() / edits.LITTLE for total in totals)
        self._tell_edits("tf.data", file, [] if is_small else edits.kept_by_pipeline(file, fits))

    def _tell_of_dataset(self, frame):
        """What a dataset keeps in the processes that load for it is not in this one."""
        loaders = getattr(sys.modules.get("torch.utils.data"), "DataLoader", None)
        if loaders is None:
            return
        for _, loader in named(frame, (loaders,)):
            kind = type(getattr(loader, "dataset", None))
            file = _file_of(kind)
            if getattr(loader, "num_workers", 0) and file is not None and _is_the_script_s(file):
                keep = 4 * (getattr(loader, "batch_size", None) or 16)
                name, changes = edits.kept_by_dataset(file, kind.__name__, keep)
                if changes:
                    self._tell_edits("torch.utils.data", file, changes, shown=f"{kind.__name__}.{name}")


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
        elif isinstance(value, _CACHE):
            results = _results_of(value)
            if results:
                found[path] = Holding(file, scope, len(results), estimate(results, 2), _nodes_in(results), results)
        elif _is_tensor(value) or _is_array(value):
            found[path] = Holding(file, scope, 0, _bytes(value), _nodes(value), value)
        elif isinstance(value, _CONTAINERS):
            found[path] = Holding(file, scope, len(value), estimate(value, 2), _nodes_in(value), value)
            if depth < DEPTH and len(value) <= SHORT:
                for key, part in _items(value):
                    todo.append((f"{path}[{_shown(key)}]", part, file, scope, depth + 1))
        elif depth < DEPTH:
            own = _dict_of(value)
            if own is not None and not _is_a_library_s(type(value)):
                for key, part in list(own.items()):
                    # TensorFlow notes there, in other containers, what a module has.
                    if not key.startswith("_self_"):
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


def frames_of_script(frame):
    """The frames that are the script's, innermost first."""
    frames = []
    while frame is not None:
        if _is_the_script_s(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return frames


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


def value_in(frame, name):
    """The value of a variable of a frame; None where it has none."""
    if frame.f_code.co_flags & _OPTIMIZED:
        return dict(_locals(frame)).get(name)
    return frame.f_globals.get(name)


def named(frame, kinds):
    """(name, thing), for things of these kinds that the script has a name for, the shortest of each."""
    seen = set()
    todo = collections.deque((path, value, depth) for path, value, _, _, depth in _roots(frame))
    while todo and len(seen) < NAMED_OBJECTS:
        path, value, depth = todo.popleft()
        if isinstance(value, _PLAIN) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kinds):
            yield path, value
        elif depth < 2 and isinstance(value, (list, tuple, dict)) and len(value) <= SHORT:
            todo.extend((f"{path}[{_shown(key)}]", part, depth + 1) for key, part in _items(value))
        elif depth < 2 and not isinstance(value, (type, types.ModuleType)):
            own = _dict_of(value) or {}
            todo.extend((f"{path}.{key}", part, depth + 1) for key, part in list(own.items()))


def _told(path, held):
    return {
        "name": path, "file": held.file, "scope": held.scope, "bytes": held.bytes, "length": held.length,
        "nodes": held.nodes, "lines": lines_that_grow(held.file, path, held.scope),
        "used": sorted(set(uses(held.file, path, held.length > 0).whole))[:USES],
        "joined": not held.length and edits.is_joined(held.file, path, held.scope),
    }


def _frames_within_model(frame):
    """How many of the innermost frames belong to a call of a model: what they name is gone when it returns."""
    count, within = 0, 0
    while frame is not None:
        count += 1
        names = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        if frame.f_code.co_name in _MODEL_CALLS and names and names[0] == "self":
            within = count
        frame = frame.f_back
    return within


def _roots(frame):
    modules = set()
    within = _frames_within_model(frame)
    libraries = []
    while frame is not None:
        code = frame.f_code
        within -= 1
        if not _is_the_script_s(code.co_filename):
            # The names of a module are no copy: they are not to be read as those of a function.
            if code.co_flags & _OPTIMIZED:
                libraries.append(frame)
        else:
            if code.co_flags & _OPTIMIZED:
                for name, value in _locals(frame):
                    if within < 0 or name == "self":
                        yield name, value, code.co_filename, code.co_name, 0
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                yield from _globals(frame.f_globals, code.co_filename, "")
        frame = frame.f_back
    yield from _kept_by_libraries(libraries)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        own = getattr(module, "__dict__", None)
        if isinstance(file, str) and isinstance(own, dict) and id(own) not in modules:
            if _is_the_script_s(file):
                modules.add(id(own))
                is_main = module.__name__ == "__main__"
                yield from _globals(own, file, "" if is_main else module.__name__ + ".")


def _kept_by_libraries(frames):
    """Objects of the script's own classes that only a library has a name for: callbacks, models, datasets."""
    seen = set()
    todo = collections.deque((value, 0) for frame in frames for _, value in _locals(frame))
    while todo and len(seen) < LIBRARY_OBJECTS:
        value, depth = todo.popleft()
        if isinstance(value, (*_PLAIN, *_NO_HOLDERS, type, types.FunctionType)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple)):
            todo.extend((part, depth + 1) for part in value[:SHORT] if depth < 3)
            continue
        file = _file_of(type(value))
        if file is not None and _is_the_script_s(file):
            yield type(value).__name__, value, file, type(value).__name__, 1
        elif depth < 2:
            todo.extend((part, depth + 1) for part in list((_dict_of(value) or {}).values())[:SHORT])


def _file_of(kind):
    """The file that defines a class."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file if isinstance(file, str) else None


def _locals(frame):
    if sys.version_info >= (3, 13):
        return list(frame.f_locals.items())
    # Before, the names of a function are read into a dictionary, the same that `locals()` gives to the
    # script: one that asks for it is left alone.
    if _reads_locals(frame.f_code):
        return []
    own = frame.f_locals
    items = list(own.items())
    # The frame would keep it, and with it what the function has let go of since.
    own.clear()
    return items


@functools.lru_cache(maxsize=256)
def _reads_locals(code):
    """Whether a function asks for its names as a dictionary. `model.eval()` is an attribute, and does not."""
    if _READERS.isdisjoint(code.co_names):
        return False
    return any(
        step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in _READERS for step in dis.get_instructions(code)
    )


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
            if isinstance(value, (*_CONTAINERS, _CACHE)):
                yield f"{cls.__name__}.{name}", value, file, cls.__name__, depth + 1


def _results_of(cache):
    """What a function without a bound remembers; one with a bound does not grow."""
    if cache.cache_parameters().get("maxsize") is not None:
        return None
    own = _dict_of(cache)
    dictionaries = [part for part in gc.get_referents(cache) if type(part) is dict and part is not own]
    return max(dictionaries, key=len, default=None)


def _dict_of(value):
    """The attributes of an object, without asking it: it may be a stand-in that does something when asked."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _shown(key):
    """A key, as long as to show it runs no code of the script."""
    return shown_key(key) if isinstance(key, (str, int)) else "…"


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
    if isinstance(value, _CONTAINERS):
        return sys.getsizeof(value) + _numbers_in(value)
    own = _dict_of(value) if depth and not isinstance(value, _PLAIN) else None
    if own is not None and not (_is_tensor(value) or _is_array(value) or isinstance(value, type)):
        return sys.getsizeof(value, 64) + estimate(own, depth - 1, seen)
    return _bytes(value)


def _numbers_in(value):
    """Bytes of the numbers in a container that is not opened any more: each is an object of its own, or all are one."""
    some = list(_some_of(value))[:4]
    # Small whole numbers are there once for all.
    if not some or not all(isinstance(part, float) or isinstance(part, int) and part > 256 for part in some):
        return 0
    return sys.getsizeof(some[0]) * len(value) if len({id(part) for part in some}) == len(some) > 1 else 0


def pipeline_class():
    """The class of all pipelines of tf.data, where it is loaded: to ask `tensorflow` for it may load it."""
    module = sys.modules.get("tensorflow.python.data.ops.dataset_ops")
    return getattr(module, "DatasetV2", None)


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
    return _is_table(value) or _is_a(
        value, ("numpy", "ndarray"), ("jax", "Array"), ("tensorflow", "Tensor"), ("tensorflow", "Variable")
    )


def _is_table(value):
    return _is_a(value, ("pandas", "DataFrame"), ("pandas", "Series"))


def _has_graph(value):
    return _is_tensor(value) and value.grad_fn is not None


def _bytes(value):
    if _is_tensor(value):
        return value.untyped_storage().nbytes()
    if _is_table(value):
        used = value.memory_usage()
        return int(used if isinstance(used, int) else used.sum())
    if _is_array(value):
        base = getattr(value, "base", None)
        own = getattr(base if _is_array(base) else value, "nbytes", None)
        # TensorFlow's know their shape only.
        return own if isinstance(own, int) else value.dtype.size * (value.shape.num_elements() or 0)
    return sys.getsizeof(value, 64)


def _bytes_of_sample(dataset):
    """Of a dataset of tf.data, where all shapes are known but for that of a batch."""
    tensorflow = sys.modules["tensorflow"]
    total = 0
    for part in tensorflow.nest.flatten(dataset.element_spec):
        shape, dtype = getattr(part, "shape", None), getattr(part, "dtype", None)
        if shape is None or shape.rank is None or dtype is None:
            return 0
        known = [size for size in shape.as_list() if size is not None]
        total += math.prod(known) * dtype.size
    return total


def _bytes_of_set(dataset):
    """Of all samples of a dataset of tf.data; None where it is not known."""
    number, each = int(dataset.cardinality()), _bytes_of_sample(dataset)
    if number < 0 or not each:
        return None
    tensorflow = sys.modules["tensorflow"]
    # The size of a batch is not always known.
    unknown = any(None in part.shape.as_list() for part in tensorflow.nest.flatten(dataset.element_spec))
    return None if unknown else number * each


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
    return not file.startswith(_LIBRARIES) and not file.startswith(_OURS) and not _is_installed(os.path.dirname(file))


@functools.lru_cache(maxsize=4096)
def _is_installed(folder):
    """Whether a folder belongs to an installed package. `pip install --target` puts packages into any folder."""
    return "site-packages" in folder or "dist-packages" in folder or any(
        (folder == path or folder.startswith(os.path.join(path, ""))) and _has_packages(path)
        for path in sys.path if isinstance(path, str) and path
    )


@functools.lru_cache(maxsize=256)
def _has_packages(path):
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(path))
    except OSError:
        return False


def _is_a_library_s(cls):
    """Classes of frameworks are not opened, but for what people derive of them."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or not _is_the_script_s(file)


def at_most():
    """Bytes that the names of this process can hold: its anonymous and shared memory, resident or swapped out, which
    is what the guard counts too. None where a GPU has a part of it."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return None
    return held_by_process() or None


def held_by_process():
    """Bytes of this process without the pages of files, such as those of libraries."""
    kinds = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
    with open("/proc/self/status", "rb") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith(kinds))


def resident():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
