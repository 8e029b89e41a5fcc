"""Finds which names of the script hold the memory, on which lines they grow, and how much.

A sample starts at what the script can name: locals of its running functions, globals of its modules and closures. From
there it follows references, a few levels deep and a few thousand objects wide. It takes a few milliseconds; the garbage
collector would take seconds and find neither arrays nor graphs. Two samples show what grew between them.
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
from .growth import find_uses, format_key, growth_lines

# Bounds of one sample.
MAX_DEPTH = 4
MAX_OBJECTS = 20_000
# Objects that are searched for models, optimizers, loaders and datasets.
MAX_NAMED_OBJECTS = 200_000
# Objects of libraries that are searched for objects of the script's classes.
MAX_LIBRARY_OBJECTS = 2_000
# Elements of a container from which the size of all is estimated.
SAMPLED_ELEMENTS = 32
# Containers up to this length are searched element by element.
MAX_OPENED_ELEMENTS = 64
# Nodes of a graph that are counted.
MAX_GRAPH_NODES = 5_000
# Share of the time that samples may take, normally and when memory is short.
MAX_TIME_SHARE, MAX_TIME_SHARE_IN_NEED = 0.002, 0.02
# Time between two samples.
FIRST_INTERVAL_SECONDS, MAX_INTERVAL_SECONDS, MIN_INTERVAL_SECONDS = 2.0, 60.0, 0.4
# A name is compared with the same sample for so long.
BASELINE_SECONDS = 30.0
# Names in one report, and names whose edits are reported in total.
MAX_NAMES, MAX_EDITED_NAMES = 5, 100
# Reported lines that use a name.
MAX_USES = 3
# Smaller growth between two samples is not reported.
MIN_GROWTH_BYTES, MIN_GROWTH_NODES = 100_000, 20
# The rung of the ladder from which samples are taken more often.
WATCH_RUNG = 1

_CONTAINERS = (list, dict, set, frozenset, tuple, collections.deque)
_PLAIN_TYPES = (str, bytes, int, float, complex, bool, type(None), range, slice)
_NON_HOLDER_TYPES = (types.ModuleType, types.BuiltinFunctionType, types.CodeType, types.FrameType, types.GeneratorType)
_CACHE_TYPE = type(functools.lru_cache(maxsize=None)(len))
_OPTIMIZED = 0x1
# Methods in which a model runs forward.
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
_OWN_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


class Holding(collections.namedtuple("Holding", "file scope length bytes nodes value", defaults=[None])):
    """What one name holds. The value is released after the sample."""


class Baseline(collections.namedtuple("Baseline", "step time resident bytes nodes")):
    """What a name held in the sample that later ones are compared with."""


class HolderWatch:
    """Takes samples from time to time and reports what grew."""

    def __init__(self):
        self._sampled_at = time.monotonic()
        self._took = 0.0
        self._interval = FIRST_INTERVAL_SECONDS
        self._is_sampling = False
        self._baselines = {}
        # Name → the edits that were reported for it.
        self._edits = {}

    def sample_if_due(self, step, rung, frame=None):
        interval = self._interval
        if rung >= WATCH_RUNG:
            # The first sample is useless without a second one.
            in_need = max(MIN_INTERVAL_SECONDS, self._took / MAX_TIME_SHARE_IN_NEED) if self._baselines else 0.0
            interval = min(interval, in_need)
        if time.monotonic() - self._sampled_at >= interval:
            self.take_sample(step, frame or sys._getframe(1))

    def take_sample(self, step, frame):
        # The signal that asks for a sample may arrive during one, repeatedly on a slow machine.
        if self._is_sampling:
            return
        self._is_sampling = True
        try:
            self._take_sample(step, frame)
        finally:
            self._is_sampling = False

    def _take_sample(self, step, frame):
        began = time.monotonic()
        with event_log.suppress_faults("finding what holds the memory"):
            found, limit = find_holdings(frame), max_holdable_bytes()
            # Edits are searched once per name, so that time does not count.
            self._took = time.monotonic() - began
            for path, holding in found.items() if limit else ():
                found[path] = holding._replace(bytes=min(holding.bytes, limit))
            self._report(step, began, resident_bytes(), found)
        with event_log.suppress_faults("searching edits for a pipeline"):
            self._report_pipeline(frame)
        with event_log.suppress_faults("searching edits for a dataset"):
            self._report_dataset(frame)
        self._sampled_at = time.monotonic()
        self._interval = min(max(2 * self._interval, self._took / MAX_TIME_SHARE), MAX_INTERVAL_SECONDS)

    def _report(self, step, now, resident, found):
        baselines = {}
        for path, held in found.items():
            fresh = Baseline(step, now, resident, held.bytes, held.nodes)
            # The older the baseline, the less memory that is allocated and freed within a step distorts the growth.
            then = self._baselines.get(path)
            baselines[path] = fresh if then is None or now - then.time > BASELINE_SECONDS else then
        names = find_grown(self._baselines, found) or find_largest(found)
        described = []
        for path, held, more, nodes in names[:MAX_NAMES]:
            then = self._baselines.get(path) or baselines[path]
            described.append(
                _describe(path, held) | {
                    "grown": more, "new_nodes": nodes, "steps": step - then.step,
                    "seconds": round(now - then.time, 3), "more": resident - then.resident,
                }
            )
        self._baselines = baselines
        notebook_cells.report_new_cells()
        event_log.log_event("holders", step=step, resident=resident, held=private_bytes(), names=described)
        for path, held, *_ in names[:MAX_NAMES]:
            with event_log.suppress_faults("searching edits for the script"):
                self._report_edits(path, held.file, edits.suggest_edits(held, path, _has_graph, resident))

    def _report_edits(self, name, file, changes, **more):
        """Reports the edits for a name once, and again if they changed."""
        if self._edits.get(name, []) != changes and len(self._edits) < MAX_EDITED_NAMES:
            self._edits[name] = changes
            event_log.log_event("edits", name=name, file=file, edits=edits.with_current_text(file, changes), **more)

    def pipeline_begins(self, dataset, frame):
        """Called before a tf.data pipeline is read: no Python runs while it fills its buffers."""
        with event_log.suppress_faults("searching edits for a pipeline"):
            if "tf.data" not in self._edits:
                self._report_pipeline(frame, [dataset])

    def _report_pipeline(self, frame, more=()):
        dataset = pipeline_class()
        if dataset is None:
            return
        while frame is not None and not _is_script_file(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        sets = [*dict(named_objects(frame, (dataset,))).values(), *more]
        each = max((_bytes_per_sample(dataset) for dataset in sets), default=0)
        fits = edits.round_down(min(resident_bytes() / 20 / each, 1000)) if each else 100
        file = frame.f_code.co_filename
        totals = [_bytes_of_dataset(dataset) for dataset in sets]
        limit = resident_bytes() / edits.SMALL_FRACTION
        is_small = totals and all(total is not None and total < limit for total in totals)
        self._report_edits("tf.data", file, [] if is_small else edits.pipeline_edits(file, fits))

    def _report_dataset(self, frame):
        """Reports a dataset that caches samples in its worker processes, where this process cannot see the memory."""
        loaders = getattr(sys.modules.get("torch.utils.data"), "DataLoader", None)
        if loaders is None:
            return
        for _, loader in named_objects(frame, (loaders,)):
            kind = type(getattr(loader, "dataset", None))
            file = _defining_file(kind)
            if getattr(loader, "num_workers", 0) and file is not None and _is_script_file(file):
                keep = 4 * (getattr(loader, "batch_size", None) or 16)
                name, changes = edits.dataset_edits(file, kind.__name__, keep)
                if changes:
                    self._report_edits("torch.utils.data", file, changes, shown=f"{kind.__name__}.{name}")


def find_holdings(frame):
    """Returns name → Holding, from a frame of the script outwards."""
    todo = collections.deque(_roots(frame))
    found, seen = {}, set()
    while todo and len(seen) < MAX_OBJECTS:
        path, value, file, scope, depth = todo.popleft()
        if isinstance(value, _PLAIN_TYPES) or isinstance(value, _NON_HOLDER_TYPES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            todo.extend(_closure(path, value, depth))
        elif isinstance(value, type):
            todo.extend(_class_attributes(path, value, depth))
        elif isinstance(value, _CACHE_TYPE):
            results = _cached_results(value)
            if results:
                found[path] = _container_holding(results, file, scope)
        elif _is_tensor(value) or _is_array(value):
            found[path] = Holding(file, scope, 0, _bytes(value), _count_graph_nodes(value), value)
        elif isinstance(value, _CONTAINERS):
            found[path] = _container_holding(value, file, scope)
            if depth < MAX_DEPTH and len(value) <= MAX_OPENED_ELEMENTS:
                for key, part in _keyed_items(value):
                    todo.append((f"{path}[{_format_plain_key(key)}]", part, file, scope, depth + 1))
        elif depth < MAX_DEPTH:
            own = _attributes_of(value)
            if own is not None and not _is_library_class(type(value)):
                for key, part in list(own.items()):
                    # TensorFlow lists a module's attributes a second time there.
                    if not key.startswith("_self_"):
                        todo.append((f"{path}.{key}", part, file, scope, depth + 1))
    return found


def _container_holding(value, file, scope):
    return Holding(file, scope, len(value), estimate_bytes(value, 2), _estimate_graph_nodes(value), value)


def find_grown(before, after):
    """Returns (name, Holding, bytes added, graph nodes added), largest growth first."""
    changes = []
    for path, now in after.items():
        then = before.get(path)
        if then is None:
            continue
        more, nodes = now.bytes - then.bytes, now.nodes - then.nodes
        if more > MIN_GROWTH_BYTES or nodes > MIN_GROWTH_NODES:
            changes.append((path, now, more, nodes))
    return _rank(changes, lambda change: change[2], lambda change: change[3])


def find_largest(found):
    """Returns (name, Holding, 0, 0), largest first."""
    names = [
        (path, held, 0, 0) for path, held in found.items()
        if held.bytes > MIN_GROWTH_BYTES or held.nodes > MIN_GROWTH_NODES
    ]
    return _rank(names, lambda name: name[1].bytes, lambda name: name[1].nodes)


def _rank(names, bytes_of, nodes_of):
    """Sorts by bytes, and puts the name with the most graph nodes among the first, because what graphs hold is not
    counted. If a container and its content grow alike, the deeper name comes first."""
    names.sort(key=lambda name: (-round(bytes_of(name) / MIN_GROWTH_BYTES, 1), -len(name[0])))
    keeper = max(names, key=lambda name: (nodes_of(name), len(name[0])), default=None)
    if keeper is not None and nodes_of(keeper) > MIN_GROWTH_NODES and keeper not in names[:MAX_NAMES]:
        names.insert(MAX_NAMES - 1, keeper)
    return names


def script_frames(frame):
    """Returns the frames of the script, innermost first."""
    frames = []
    while frame is not None:
        if _is_script_file(frame.f_code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return frames


def script_location(frame):
    """Returns `file`, `line` and `function` of the innermost frame of the script, or {} if there is none."""
    while frame is not None:
        if _is_script_file(frame.f_code.co_filename):
            code = frame.f_code
            return {"file": code.co_filename, "line": frame.f_lineno, "function": code.co_name}
        frame = frame.f_back
    return {}


def innermost_frame(trace):
    """Returns the frame in which an exception was raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame if trace is not None else None


def is_raised_in(trace, modules):
    """Whether an exception passed through a module whose name begins with one of `modules`."""
    while trace is not None:
        if str(trace.tb_frame.f_globals.get("__name__", "")).startswith(modules):
            return True
        trace = trace.tb_next
    return False


def variable_value(frame, name):
    """Returns the value of a frame's variable, or None if it does not exist."""
    if frame.f_code.co_flags & _OPTIMIZED:
        return dict(_locals(frame)).get(name)
    return frame.f_globals.get(name)


def named_objects(frame, kinds):
    """Yields (shortest name, object) for each object of these types that the script has a name for."""
    seen = set()
    todo = collections.deque((path, value, depth) for path, value, _, _, depth in _roots(frame))
    while todo and len(seen) < MAX_NAMED_OBJECTS:
        path, value, depth = todo.popleft()
        if isinstance(value, _PLAIN_TYPES) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, kinds):
            yield path, value
        elif depth < 2 and isinstance(value, (list, tuple, dict)) and len(value) <= MAX_OPENED_ELEMENTS:
            todo.extend((f"{path}[{_format_plain_key(key)}]", part, depth + 1) for key, part in _keyed_items(value))
        elif depth < 2 and not isinstance(value, (type, types.ModuleType)):
            own = _attributes_of(value) or {}
            todo.extend((f"{path}.{key}", part, depth + 1) for key, part in list(own.items()))


def _describe(path, held):
    return {
        "name": path, "file": held.file, "scope": held.scope, "bytes": held.bytes, "length": held.length,
        "nodes": held.nodes, "lines": growth_lines(held.file, path, held.scope),
        "used": sorted(set(find_uses(held.file, path, held.length > 0).whole))[:MAX_USES],
        "joined": not held.length and edits.is_concatenated(held.file, path, held.scope),
    }


def _frames_within_model(frame):
    """Returns how many of the innermost frames belong to a model's forward call: their locals are freed when it
    returns."""
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
        if not _is_script_file(code.co_filename):
            # Reading module-level names as locals would modify the module, because they are not a copy.
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
    yield from _objects_held_by_libraries(libraries)
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        own = getattr(module, "__dict__", None)
        if isinstance(file, str) and isinstance(own, dict) and id(own) not in modules:
            if _is_script_file(file):
                modules.add(id(own))
                is_main = module.__name__ == "__main__"
                yield from _globals(own, file, "" if is_main else module.__name__ + ".")


def _objects_held_by_libraries(frames):
    """Yields objects of the script's classes that only a library has a name for: callbacks, models, datasets."""
    seen = set()
    todo = collections.deque((value, 0) for frame in frames for _, value in _locals(frame))
    while todo and len(seen) < MAX_LIBRARY_OBJECTS:
        value, depth = todo.popleft()
        if isinstance(value, (*_PLAIN_TYPES, *_NON_HOLDER_TYPES, type, types.FunctionType)) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, (list, tuple)):
            todo.extend((part, depth + 1) for part in value[:MAX_OPENED_ELEMENTS] if depth < 3)
            continue
        file = _defining_file(type(value))
        if file is not None and _is_script_file(file):
            yield type(value).__name__, value, file, type(value).__name__, 1
        elif depth < 2:
            parts = list((_attributes_of(value) or {}).values())[:MAX_OPENED_ELEMENTS]
            todo.extend((part, depth + 1) for part in parts)


def _defining_file(kind):
    """Returns the file that defines a class."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file if isinstance(file, str) else None


def _locals(frame):
    if sys.version_info >= (3, 13):
        return list(frame.f_locals.items())
    # Older versions copy the locals into the dictionary that `locals()` returns to the script. Functions that use it
    # are skipped.
    if _reads_locals(frame.f_code):
        return []
    own = frame.f_locals
    items = list(own.items())
    # The frame would keep the copies alive after the function deleted its variables.
    own.clear()
    return items


@functools.lru_cache(maxsize=256)
def _reads_locals(code):
    """Whether a function reads its locals as a dictionary. `model.eval()` is an attribute and does not count."""
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
    if _is_script_file(code.co_filename) and depth < MAX_DEPTH:
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            try:
                yield name, cell.cell_contents, code.co_filename, code.co_name, depth + 1
            except ValueError:
                pass


def _class_attributes(path, cls, depth):
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    if isinstance(file, str) and _is_script_file(file) and depth < MAX_DEPTH:
        for name, value in list(vars(cls).items()):
            if isinstance(value, (*_CONTAINERS, _CACHE_TYPE)):
                yield f"{cls.__name__}.{name}", value, file, cls.__name__, depth + 1


def _cached_results(cache):
    """Returns the cached results of an `lru_cache` without a limit; others do not grow."""
    if cache.cache_parameters().get("maxsize") is not None:
        return None
    own = _attributes_of(cache)
    dictionaries = [part for part in gc.get_referents(cache) if type(part) is dict and part is not own]
    return max(dictionaries, key=len, default=None)


def _attributes_of(value):
    """Returns the attributes of an object without calling its code: it may be a lazy proxy."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return own if isinstance(own, dict) else None


def _format_plain_key(key):
    """Formats a key of a type whose `repr` runs no code of the script."""
    return format_key(key) if isinstance(key, (str, int)) else "…"


def _keyed_items(value):
    return list(value.items()) if isinstance(value, dict) else list(enumerate(value))


def _sample_elements(value):
    """Returns sample elements, evenly spaced if the container supports indexing."""
    if isinstance(value, dict):
        value = value.values()
    elif isinstance(value, (list, tuple)):
        return value[:: max(1, len(value) // SAMPLED_ELEMENTS)][:SAMPLED_ELEMENTS]
    return [part for _, part in zip(range(SAMPLED_ELEMENTS), value)]


def estimate_bytes(value, depth, seen=None):
    """Estimates bytes from sample elements. Shared objects count once: small integers, views of one storage."""
    seen = set() if seen is None else seen
    if isinstance(value, _CONTAINERS) and depth:
        some = _sample_elements(value)
        if not some:
            return sys.getsizeof(value)
        total = 0
        for part in some:
            mark = _storage_pointer(part) or id(part)
            if mark not in seen:
                seen.add(mark)
                total += estimate_bytes(part, depth - 1, seen)
        return sys.getsizeof(value) + int(total / len(some) * len(value))
    if isinstance(value, _CONTAINERS):
        return sys.getsizeof(value) + _bytes_of_numbers(value)
    own = _attributes_of(value) if depth and not isinstance(value, _PLAIN_TYPES) else None
    if own is not None and not (_is_tensor(value) or _is_array(value) or isinstance(value, type)):
        return sys.getsizeof(value, 64) + estimate_bytes(own, depth - 1, seen)
    return _bytes(value)


def _bytes_of_numbers(value):
    """Returns the bytes of the numbers in a container below the depth limit."""
    some = list(_sample_elements(value))[:4]
    # CPython keeps one object for each small integer.
    if not some or not all(isinstance(part, float) or isinstance(part, int) and part > 256 for part in some):
        return 0
    return sys.getsizeof(some[0]) * len(value) if len({id(part) for part in some}) == len(some) > 1 else 0


def pipeline_class():
    """Returns the base class of tf.data pipelines if it is loaded. An attribute of `tensorflow` would load it."""
    module = sys.modules.get("tensorflow.python.data.ops.dataset_ops")
    return getattr(module, "DatasetV2", None)


def is_framework_instance(value, *kinds):
    """Like `isinstance` for (module, class) pairs of frameworks that may not be imported."""
    for module, name in kinds:
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            return True
    return False


def _is_tensor(value):
    return is_framework_instance(value, ("torch", "Tensor"))


def _is_array(value):
    return _is_table(value) or is_framework_instance(
        value, ("numpy", "ndarray"), ("jax", "Array"), ("tensorflow", "Tensor"), ("tensorflow", "Variable")
    )


def _is_table(value):
    return is_framework_instance(value, ("pandas", "DataFrame"), ("pandas", "Series"))


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
        # TensorFlow tensors have no `nbytes`.
        return own if isinstance(own, int) else value.dtype.size * (value.shape.num_elements() or 0)
    return sys.getsizeof(value, 64)


def _bytes_per_sample(dataset):
    """Returns the bytes of one sample of a tf.data dataset, or 0 if a shape is unknown. The batch dimension may be."""
    tensorflow = sys.modules["tensorflow"]
    total = 0
    for part in tensorflow.nest.flatten(dataset.element_spec):
        shape, dtype = getattr(part, "shape", None), getattr(part, "dtype", None)
        if shape is None or shape.rank is None or dtype is None:
            return 0
        known = [size for size in shape.as_list() if size is not None]
        total += math.prod(known) * dtype.size
    return total


def _bytes_of_dataset(dataset):
    """Returns the bytes of all samples of a tf.data dataset, or None if unknown."""
    number, each = int(dataset.cardinality()), _bytes_per_sample(dataset)
    if number < 0 or not each:
        return None
    tensorflow = sys.modules["tensorflow"]
    # The batch dimension may be unknown.
    unknown = any(None in part.shape.as_list() for part in tensorflow.nest.flatten(dataset.element_spec))
    return None if unknown else number * each


def _storage_pointer(value):
    return value.untyped_storage().data_ptr() if _is_tensor(value) else None


def _count_graph_nodes(value):
    """Returns the number of nodes of the graph behind a tensor."""
    node = getattr(value, "grad_fn", None)
    if node is None:
        return 0
    seen, todo = {node}, [node]
    while todo and len(seen) < MAX_GRAPH_NODES:
        for after, _ in todo.pop().next_functions:
            if after is not None and after not in seen:
                seen.add(after)
                todo.append(after)
    return len(seen)


def _estimate_graph_nodes(value):
    some = _sample_elements(value)[:4]
    counts = [_count_graph_nodes(part) for part in some if _is_tensor(part)]
    return int(sum(counts) / len(some) * len(value)) if counts else 0


def _is_script_file(file):
    if file.startswith("<"):
        # A notebook cell, or code given with `python -c`.
        return file.startswith("<ipython-input") or file in ("<string>", "<stdin>")
    file = os.path.realpath(file) if not os.path.isabs(file) else file
    return not file.startswith((*_LIBRARIES, _OWN_FOLDER)) and not _is_installed(os.path.dirname(file))


@functools.lru_cache(maxsize=4096)
def _is_installed(folder):
    """Whether a folder belongs to an installed package. `pip install --target` installs into any folder."""
    return "site-packages" in folder or "dist-packages" in folder or any(
        (folder == path or folder.startswith(os.path.join(path, ""))) and _has_installed_packages(path)
        for path in sys.path if isinstance(path, str) and path
    )


@functools.lru_cache(maxsize=256)
def _has_installed_packages(path):
    try:
        return any(name.endswith(".dist-info") for name in os.listdir(path))
    except OSError:
        return False


def _is_library_class(cls):
    """Objects of library classes are not searched, except those of classes that the script derives from them."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return not isinstance(file, str) or not _is_script_file(file)


def max_holdable_bytes():
    """Returns the most bytes that names can hold: the process's anonymous and shared memory, resident or swapped, as
    the guard counts it. None if a GPU may hold a part of it."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized():
        return None
    return private_bytes() or None


def private_bytes():
    """Returns the bytes of this process without file pages, such as those of libraries."""
    kinds = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
    with open("/proc/self/status", "rb") as file:
        return 1024 * sum(int(line.split()[1]) for line in file if line.startswith(kinds))


def resident_bytes():
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
