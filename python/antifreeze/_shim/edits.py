"""Finds edits to a script that make a name hold less memory.

An edit is derived from facts: the statement on which the name grows, the type of the container, its content, and how
the rest of the file uses it. If these do not lead to a line that is certain to run, there is no edit.

An edit is a dictionary. `action` is `replace` (the lines `line` to `last_line`), `before` or `after` (a new line before
`line` or after `last_line`). `code` has no indentation; `with_current_text` adds that of `line` as `indent`. `why` is
`detach`, `bound`, `spill`, `state`, `cache`, `tf-cache`, `tf-shuffle`, `dataset-cache` or `whole-set`. `keep` is the
number of elements that remain, besides the `first` ones. `imports` are lines that the file lacks. `whole` is a line
that uses all elements.
"""

import ast
import collections
import linecache

from .growth import Growth, assignments, find_uses, growth_statements, integer_constants, last_name, parse_file

# The edit keeps one n-th of the elements.
KEPT_FRACTION = 4
# A container with less than one n-th of the process's memory need not be limited.
SMALL_FRACTION = 8
# Smaller elements are not written to files.
MIN_SPILLED_BYTES = 100_000
# The C library returns the memory of freed tensors of at least this size to the system.
MIN_MMAP_BYTES = 32 << 20
# The number of samples per call for a model that was called with all samples at once.
SAMPLES_PER_CALL = 64
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)
_JOINS = {"concatenate", "concat", "cat", "vstack", "hstack", "append", "stack", "row_stack"}


def suggest_edits(holding, path, is_graph, resident):
    """Returns the edits for one name, or an empty list if none is certain to run.

    `is_graph` returns whether a value is a tensor with a graph; `resident` is the resident size of the process.
    """
    grows = growth_statements(holding.file, path, holding.scope)
    if not grows:
        return []
    growth = grows[0]
    if growth.kind == "cache":
        return _edits_of_cache(holding, growth)
    if not _has_own_lines(holding.file, growth.statement):
        return []
    is_container = hasattr(type(holding.value), "__len__") and not hasattr(holding.value, "shape")
    used = find_uses(holding.file, path, is_container)
    is_large = holding.bytes > resident / SMALL_FRACTION
    if growth.kind == "self":
        return _edits_of_state(holding, growth, used, is_graph, is_large)
    if growth.kind == "sum" and not isinstance(holding.value, (list, collections.deque)):
        has_graph = is_graph(holding.value) and used.backward is None
        return [_detach_edit(holding.file, growth, [growth.node.value])] if has_graph else []
    return _edits_of_container(holding, growth, used, is_graph, is_large)


def with_current_text(file, changes):
    """Returns the edits with the current text of the lines that they change."""
    told = []
    for change in changes:
        lines = [linecache.getline(file, number) for number in range(change["line"], change["last_line"] + 1)]
        indent = lines[0][: len(lines[0]) - len(lines[0].lstrip())]
        told.append({**change, "before": "".join(lines).strip(), "indent": indent.strip("\r\n\f")})
    return told


def is_concatenated(file, path, scope):
    """Whether the script concatenates more to an array of this name."""
    grows = growth_statements(file, path, scope)
    return bool(grows) and grows[0].kind == "self" and _is_concatenation(grows[0].node.value)


def _is_concatenation(value):
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in _JOINS


def round_down(number):
    """Rounds down to 1, 2 or 5 times a power of ten, so that reported numbers rarely change."""
    step = 10 ** (len(str(max(int(number), 1))) - 1)
    return max(factor * step for factor in (1, 2, 5) if factor * step <= max(number, 1))


def _edits_of_container(holding, growth, used, is_graph, is_large):
    stored, newest, container = _stored_value(growth, holding.value)
    if stored is None:
        return []
    with_graph = _with_graph(stored, newest, is_graph)
    changes = []
    if with_graph:
        if used.backward is not None:
            return []
        changes.append(_detach_edit(holding.file, growth, with_graph))
    if is_large or not with_graph:
        bound = _limit_edit(holding, growth, used, container)
        if bound is None:
            # An edit that frees only a part does not help.
            return changes if not is_large else []
        changes.append(bound)
    return changes


def _stored_value(growth, value):
    """Returns (the expression that is stored, its newest value, the container that holds it)."""
    container, target = value, growth.target
    if isinstance(target, ast.Subscript) or isinstance(target, ast.Call):
        # For `x[key].append(value)`, look at the longest list.
        if isinstance(container, dict) and container:
            container = max(container.values(), key=_length)
    if growth.kind == "sum":
        is_list = isinstance(growth.node.value, ast.List) and len(growth.node.value.elts) == 1
        expression = growth.node.value.elts[0] if is_list else None
    elif growth.kind == "item":
        expression = growth.node.value
    else:
        call, method = growth.node, growth.node.func.attr
        place = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}.get(method)
        has_it = place is not None and len(call.args) == place + 1 and not call.keywords
        expression = call.args[place] if has_it else None
        if method == "extend" and len(call.args) == 1:
            expression = call.args[0]
    return expression, _newest(container), container


def _length(value):
    return len(value) if isinstance(value, (list, tuple, dict, set, collections.deque)) else 0


def _newest(container):
    if isinstance(container, dict):
        return next(reversed(container.values())) if container else None
    if isinstance(container, (list, tuple, collections.deque)):
        return container[-1] if container else None
    if isinstance(container, (set, frozenset)):
        return next(iter(container), None)
    return None


def _with_graph(expression, value, is_graph):
    """Returns the parts of an expression whose values have a graph."""
    if is_graph(value):
        return [expression]
    found = []
    for part, held in _parts(expression, value):
        found += _with_graph(part, held, is_graph)
    return found


def _parts(expression, value):
    if isinstance(expression, (ast.Tuple, ast.List)) and isinstance(value, (tuple, list)):
        if len(expression.elts) == len(value) and not any(isinstance(part, ast.Starred) for part in expression.elts):
            yield from zip(expression.elts, value)
    elif isinstance(expression, ast.Dict) and isinstance(value, dict):
        for key, part in zip(expression.keys, expression.values):
            if isinstance(key, ast.Constant) and key.value in value:
                yield part, value[key.value]
    elif isinstance(expression, ast.Call):
        names = list(getattr(type(value), "__dataclass_fields__", ()) or getattr(type(value), "_fields", ()))
        own = dict(zip(names, value)) if isinstance(value, tuple) else getattr(value, "__dict__", {})
        if names and not any(isinstance(part, ast.Starred) for part in expression.args):
            pairs = [*zip(names, expression.args), *((key.arg, key.value) for key in expression.keywords)]
            yield from ((part, own[name]) for name, part in pairs if name in own)


def _detach_edit(file, growth, expressions):
    return _insert_edit(file, growth.statement, "detach", [(part, ".detach()") for part in expressions])


def _limit_edit(holding, growth, used, container):
    """Returns an edit that adds a line to remove the oldest elements. If all elements are used later, returns one that
    stores them in files instead."""
    target = _repeatable_text(holding.file, growth)
    length = _length(container)
    if target is None or not length:
        return None
    is_list = isinstance(container, list)
    if type(container).__module__.split(".")[0] in ("tensorflow", "keras", "torch"):
        # A framework's own list type, which tracks its elements elsewhere.
        return None
    if is_list and growth.kind == "item":
        # The list had its full length from the beginning.
        return None
    if used.whole or _reads_removed_elements(growth, used, container):
        return _spill_edit(holding, growth, used, container, target) if is_list else None
    keep = max(round_down(length / KEPT_FRACTION), used.needs)
    if keep + used.first > 0.6 * length or (used.first and not is_list):
        return None
    if is_list:
        code = f"del {target}[{used.first or ''}:-{keep}]"
    elif isinstance(container, dict):
        code = f"while len({target}) > {keep}: {target}.pop(next(iter({target})))"
    elif isinstance(container, collections.deque):
        code = f"while len({target}) > {keep}: {target}.popleft()"
    elif isinstance(container, set):
        code = f"while len({target}) > {keep}: {target}.pop()"
    else:
        return None
    return {**_line_edit("after", growth.statement, code, "bound", keep, used), "first": used.first or None}


def _reads_removed_elements(growth, used, container):
    """Whether elements are read that may be removed by then. Reading the entry that was just stored is safe."""
    if not isinstance(container, dict) or growth.kind != "item":
        return bool(used.keys)
    keys = [part.slice for part in _parts_of_targets(growth.node) if getattr(part, "value", None) is growth.target]
    texts = {ast.unparse(key) for key in keys}
    return any(
        text not in texts or (function != growth.function and growth.function not in called)
        for text, function, called in used.keys
    )


def _parts_of_targets(statement):
    for target in statement.targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _spill_edit(holding, growth, used, container, target):
    """Returns an edit for arrays that are appended to a list and used as a whole later: each is written to a file and
    memory-mapped."""
    newest, statement = container[-1], growth.statement
    is_append = growth.kind == "call" and growth.node.func.attr == "append" and isinstance(statement, ast.Expr)
    kind = type(newest).__module__.split(".")[0]
    is_array = hasattr(newest, "shape") and kind in ("numpy", "torch", "tensorflow", "jax", "jaxlib")
    is_concatenated = _is_concatenated(holding.file, used.whole)
    constant_keys = all(isinstance(node, ast.Constant) for node in _keys(growth.target))
    if not is_append or not is_array or is_concatenated or not constant_keys or used.shrinks:
        return None
    if holding.bytes / len(container) < MIN_SPILLED_BYTES:
        return None
    stored = ast.unparse(growth.node.args[0])
    stem = "".join(letter if letter.isalnum() else "_" for letter in target).strip("_")
    file = f'f"{stem}-{{len({target})}}.npy"'
    names = _module_names(holding.file)
    numpy, imports = names.get("numpy"), []
    if numpy is None:
        numpy, imports = "np", ["import numpy as np"]
    if kind == "torch":
        torch = names.get("torch")
        # Smaller freed blocks stay in the heap if other objects lie between them.
        if holding.bytes / len(container) < MIN_MMAP_BYTES:
            return None
        if torch is None or newest.device.type != "cpu" or newest.dtype.is_complex or "bfloat" in str(newest.dtype):
            return None
        saved, loaded = f"{stored}.detach().numpy()", f'{torch}.from_numpy({numpy}.load({file}, mmap_mode="r+"))'
    else:
        saved, loaded = stored, f'{numpy}.load({file}, mmap_mode="r")'
    code = f"{numpy}.save({file}, {saved})\n{target}.append({loaded})"
    change = _line_edit("replace", statement, code, "spill", 0, used)
    return {**change, "keep": None, "imports": imports, "whole": used.whole[0] if used.whole else None}


def _is_concatenated(file, lines):
    """Whether one of these lines concatenates all arrays, which would bring them back into memory."""
    tree = parse_file(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and node.lineno in lines:
            if last_name(node.func) in _JOINS | {"array", "asarray"}:
                return True
    return False


def _keys(node):
    while isinstance(node, (ast.Subscript, ast.Attribute)):
        if isinstance(node, ast.Subscript):
            yield node.slice
        node = node.value


def _module_names(file):
    """Returns module → the name under which the file imports it at its top level."""
    tree = parse_file(file)
    names = {}
    for node in tree.body if tree is not None else ():
        if isinstance(node, ast.Import):
            for part in node.names:
                if "." not in part.name or part.asname:
                    names.setdefault(part.name, part.asname or part.name)
    return names


def _edits_of_state(holding, growth, used, is_graph, is_large):
    """Returns the edits for `x = f(x)`: a concatenated array, a sum, or a state carried from step to step."""
    value, statement = growth.node.value, growth.statement
    target = _repeatable_text(holding.file, growth)
    if target is None:
        return []
    if _is_concatenation(value) and growth.target in growth.node.targets:
        rows, axis = _row_count(holding.value), _concatenation_axis(value)
        keep = max(round_down(rows / KEPT_FRACTION), used.needs)
        if axis != 0 or not is_large or keep > 0.6 * rows or used.whole or used.keys or used.first:
            return []
        rest = ".detach()" if is_graph(holding.value) else ""
        is_table = hasattr(holding.value, "iloc")
        code = f"{target} = {target}{'.iloc' if is_table else ''}[-{keep}:]{rest}"
        return [_line_edit("after", statement, code, "bound", keep, used)]
    parts = list(holding.value) if isinstance(holding.value, (tuple, list)) else [holding.value]
    if not parts or not all(is_graph(part) for part in parts):
        return []
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and used.backward is None:
        sides = [side for side in (value.left, value.right) if ast.unparse(side) != ast.unparse(growth.target)]
        if len(sides) == 1:
            return [_detach_edit(holding.file, growth, sides)]
    if used.backward is not None:
        return []
    if isinstance(holding.value, (tuple, list)):
        kind = "tuple" if isinstance(holding.value, tuple) else "list"
        code = f"{kind}(part.detach() for part in {target})"
    else:
        code = f"{target}.detach()"
    condition = f" if {target} is not None else None" if used.begins_as_none else ""
    place = _begin_of_step(growth)
    if not _has_own_lines(holding.file, place):
        return []
    return [_line_edit("before", place, f"{target} = {code}{condition}", "state", None, used)]


def _begin_of_step(growth):
    """Returns the first statement of the innermost loop around the growth that also calls `backward`, else the
    outermost loop or the statement itself."""
    for loop in reversed(growth.loops):
        calls = (node for node in ast.walk(loop) if isinstance(node, ast.Call))
        if any(isinstance(call.func, ast.Attribute) and call.func.attr == "backward" for call in calls):
            return loop.body[0]
    return growth.loops[0] if growth.loops else growth.statement


def _row_count(value):
    shape = getattr(value, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else 0


def _concatenation_axis(call):
    """Returns the axis of a concatenation, 0 by default, or None if it is unknown."""
    if call.func.attr == "hstack":
        return None
    given = [key.value for key in call.keywords if key.arg in ("axis", "dim")]
    given += call.args[1:2] if call.func.attr != "append" else call.args[2:3]
    if call.func.attr == "append" and not given:
        # NumPy flattens the array then, which still grows at its end.
        return 0
    return 0 if not given else given[0].value if isinstance(given[0], ast.Constant) else None


def _edits_of_cache(holding, growth):
    """Returns an edit that limits a cache decorator."""
    decorator = growth.node
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    keep = round_down(holding.length / KEPT_FRACTION)
    imports = []
    if isinstance(function, ast.Attribute):
        text = f"{ast.unparse(function.value)}.lru_cache"
    else:
        text = "lru_cache"
        if function.id != "lru_cache":
            imports = ["from functools import lru_cache"]
    return [{
        "action": "replace", "line": decorator.lineno, "last_line": decorator.end_lineno,
        "code": f"@{text}(maxsize={keep})", "why": "cache", "keep": keep, "imports": imports, "whole": None,
    }]


def _repeatable_text(file, growth):
    """Returns the text of the expression that grows, if evaluating it again has no side effects."""
    target = growth.target
    if isinstance(target, ast.Call):
        # `x.setdefault(key, []).append(value)`.
        target = ast.Subscript(target.func.value, target.args[0], ast.Load())
    harmless = (
        ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context, ast.Tuple, ast.JoinedStr,
        ast.FormattedValue, ast.BinOp, ast.operator,
    )
    if not all(isinstance(node, harmless) for node in ast.walk(target)):
        return None
    return ast.unparse(ast.fix_missing_locations(target))


def _line_edit(action, statement, code, why, keep, used):
    return {
        "action": action, "line": statement.lineno, "last_line": statement.end_lineno, "code": code, "why": why,
        "keep": keep, "imports": [], "whole": used.whole[0] if used.whole and keep else None,
    }


def _has_own_lines(file, statement):
    """Whether no other statement shares the lines of this one."""
    first = linecache.getline(file, statement.lineno).encode()
    last = linecache.getline(file, statement.end_lineno).encode()
    after = last[statement.end_col_offset:].strip()
    return not first[: statement.col_offset].strip() and (not after or after.startswith(b"#"))


def _insert_edit(file, statement, why, additions):
    """Returns an edit that adds text after some expressions of a statement."""
    lines = [linecache.getline(file, number).encode() for number in range(statement.lineno, statement.end_lineno + 1)]
    pieces = []
    for node, text in additions:
        is_atom = isinstance(node, _ATOMS) and not (isinstance(node, ast.Constant) and node.value is None)
        pieces.append((node.end_lineno, node.end_col_offset, (text if is_atom else ")" + text).encode()))
        if not is_atom:
            pieces.append((node.lineno, node.col_offset, b"("))
    for line, column, text in sorted(pieces, reverse=True):
        at = line - statement.lineno
        lines[at] = lines[at][:column] + text + lines[at][column:]
    code = b"".join(lines)[statement.col_offset:].decode("utf-8", "replace").rstrip()
    return {
        "action": "replace", "line": statement.lineno, "last_line": statement.end_lineno, "code": code, "why": why,
        "keep": None, "imports": [], "whole": None,
    }


# Memory that no name of the script holds.

_BATCH_WORDS = ("batch_size", "batchsize", "batch", "bs", "bsz")


def find_batch_size_line(file):
    """Returns where the batch size is written: `line`, the text `before` and `after` the number, and its `value`. None
    if there is no such place, or more than one."""
    tree = parse_file(file)
    if tree is None:
        return None
    found = {}
    for node in ast.walk(tree):
        for word, value in _numbers_with_names(node):
            if word.lower().lstrip("-").replace("-", "_") in _BATCH_WORDS and value.value > 1:
                found[(value.lineno, value.col_offset)] = value
    if not found:
        for node in ast.walk(tree):
            for word, value in _numbers_with_names(node):
                if "batch" in word.lower() and "batches" not in word.lower() and value.value > 1:
                    found[(value.lineno, value.col_offset)] = value
    if not found:
        for node in ast.walk(tree):
            is_batch = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "batch"
            if is_batch and len(node.args) == 1 and _is_number(node.args[0]):
                found[(node.args[0].lineno, node.args[0].col_offset)] = node.args[0]
    if len(found) != 1:
        # Another one is usually for evaluation.
        return None
    value = next(iter(found.values()))
    text = linecache.getline(file, value.lineno).encode()
    before, after = text[: value.col_offset], text[value.end_col_offset:]
    return {
        "line": value.lineno, "before": before.decode("utf-8", "replace").lstrip(),
        "after": after.decode("utf-8", "replace").rstrip(), "value": value.value,
    }


def _is_number(node):
    return isinstance(node, ast.Constant) and type(node.value) is int


def _numbers_with_names(node):
    """Yields (name, constant) for every integer that this node assigns to a name."""
    for target, value in assignments(node):
        if _is_number(value) and last_name(target):
            yield last_name(target), value
    if isinstance(node, ast.Call):
        for key in node.keywords:
            if key.arg and _is_number(key.value):
                yield key.arg, key.value
        words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        for key in node.keywords:
            # `add_argument("--batch-size", default=64)`.
            if key.arg == "default" and _is_number(key.value):
                yield from ((word, key.value) for word in words if word.startswith("--"))
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_number(value):
                yield key.value, value
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        arguments = [*node.args.posonlyargs, *node.args.args]
        for argument, value in zip(reversed(arguments), reversed(node.args.defaults)):
            if _is_number(value):
                yield argument.arg, value


def pipeline_edits(file, shuffled):
    """Returns the edit for a tf.data pipeline that keeps samples in memory: `cache()` without a file, or a `shuffle` of
    more than `shuffled` samples after `map`."""
    tree = parse_file(file)
    calls = [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ] if tree is not None else []
    for call in calls:
        if call.func.attr == "cache" and not call.args and not call.keywords:
            change = _remove_call_edit(file, call)
            if change is not None:
                return [change]
    constants = integer_constants(tree) if tree is not None else {}
    for call in calls:
        if call.func.attr == "shuffle" and (call.args or call.keywords):
            size = call.args[0] if call.args else call.keywords[0].value
            number = size.value if _is_number(size) else constants.get(last_name(size))
            is_of_samples = any(isinstance(node, ast.Attribute) and node.attr == "map" for node in ast.walk(call.func))
            is_arrays = any(
                isinstance(node, ast.Attribute) and node.attr == "from_tensor_slices" for node in ast.walk(call.func)
            )
            on_one_line = size.lineno == size.end_lineno
            may_be = number is None or number > shuffled
            if may_be and on_one_line and (is_of_samples or not is_arrays):
                text = linecache.getline(file, size.lineno).encode()
                text = text[: size.col_offset] + str(shuffled).encode() + text[size.end_col_offset:]
                return [_replace_line_edit(size.lineno, text, "tf-shuffle", shuffled)]
    return []


def dataset_edits(file, class_name, keep):
    """Returns (attribute, edits) for a dataset whose `__getitem__` caches every sample; (None, []) if there is no such
    attribute, or other methods need what it holds."""
    tree = parse_file(file)
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == class_name] \
        if tree is not None else []
    for method in (part for node in classes for part in node.body if isinstance(part, ast.FunctionDef)):
        if method.name != "__getitem__":
            continue
        for statement in ast.walk(method):
            for part in _parts_of_targets(statement) if isinstance(statement, ast.Assign) else ():
                growing = part.value if isinstance(part, ast.Subscript) else None
                is_own = isinstance(growing, ast.Attribute) and isinstance(growing.value, ast.Name)
                if not is_own or growing.value.id != "self" or not _has_own_lines(file, statement):
                    continue
                growth = Growth("item", statement, growing, statement, method.name, [])
                used = find_uses(file, f"self.{growing.attr}")
                if used.whole or used.first or _reads_removed_elements(growth, used, {}):
                    continue
                if not used.has_membership_test:
                    continue
                text = ast.unparse(growing)
                code = f"while len({text}) > {keep}: {text}.pop(next(iter({text})))"
                return growing.attr, [_line_edit("after", statement, code, "dataset-cache", keep, used)]
    return None, []


def whole_set_edits(frames, is_torch, is_keras):
    """Returns (file, edits) for a model that is called with all samples at once, in the outermost frame that does so
    without training."""
    for frame in reversed(frames):
        file, line, names = frame.f_code.co_filename, frame.f_lineno, {**frame.f_globals, **frame.f_locals}
        tree = parse_file(file)
        if tree is None or frame.f_code.co_name in ("forward", "call", "__call__"):
            continue
        if _runs_backward(tree, line):
            continue
        for node in ast.walk(tree):
            is_here = isinstance(node, ast.Call) and node.lineno <= line <= node.end_lineno
            if not is_here or node.lineno != node.end_lineno or len(node.args) != 1:
                continue
            model, samples = _current_value(node.func, names), _current_value(node.args[0], names)
            if samples is None or _row_count(samples) <= SAMPLES_PER_CALL:
                continue
            called, given = ast.unparse(node.func), ast.unparse(node.args[0])
            more = "".join(f", {ast.unparse(key)}" for key in node.keywords)
            imports = []
            if is_torch(model):
                code = f"torch.cat([{called}(part{more}).detach() for part in {given}.split({SAMPLES_PER_CALL})])"
                imports = [] if "torch" in names else ["import torch"]
            elif is_keras(model):
                tensorflow = _module_names(file).get("tensorflow", "tf")
                imports = [] if tensorflow in names else ["import tensorflow as tf"]
                parts = f"for at in range(0, len({given}), {SAMPLES_PER_CALL})"
                code = f"{tensorflow}.concat([{called}({given}[at:at + {SAMPLES_PER_CALL}]{more}) {parts}], 0)"
            else:
                continue
            if not _gives_one_tensor(model):
                continue
            text = linecache.getline(file, node.lineno).encode()
            text = text[: node.col_offset] + code.encode() + text[node.end_col_offset:]
            return file, [{**_replace_line_edit(node.lineno, text, "whole-set", SAMPLES_PER_CALL), "imports": imports}]
    return None, []


def _gives_one_tensor(model):
    """False for models that return several values or an object with fields."""
    outputs = getattr(model, "outputs", None)
    is_of_transformers = any(kind.__module__.startswith("transformers.") for kind in type(model).__mro__)
    return not is_of_transformers and not (isinstance(outputs, (list, tuple)) and len(outputs) > 1)


def _runs_backward(tree, line):
    """Whether the innermost function or loop around this line runs backward. Other loops in it do not count."""
    blocks = (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.AsyncFor, ast.While)
    around = [node for node in ast.walk(tree) if isinstance(node, blocks) and node.lineno <= line <= node.end_lineno]
    todo = around[-1:] or [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Attribute) and node.attr in ("backward", "GradientTape"):
            return True
        is_other = lambda child: isinstance(child, blocks) and not child.lineno <= line <= child.end_lineno
        todo += [child for child in ast.iter_child_nodes(node) if not is_other(child)]
    return False


def _current_value(node, names):
    """Returns the current value of a name or attribute, without running code of the script."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        try:
            own = object.__getattribute__(_current_value(node.value, names), "__dict__")
        except AttributeError:
            return None
        if not isinstance(own, dict):
            return None
        return own.get(node.attr, (own.get("_modules") or {}).get(node.attr))
    return None


def _replace_line_edit(line, text, why, keep):
    return {
        "action": "replace", "line": line, "last_line": line, "code": text.decode("utf-8", "replace").strip(),
        "why": why, "keep": keep, "imports": [], "whole": None,
    }


def _remove_call_edit(file, call):
    """Returns an edit that removes `.cache()`, or its whole line if nothing else is on it."""
    begin = call.func.value.end_lineno, call.func.value.end_col_offset
    end = call.end_lineno, call.end_col_offset
    text = linecache.getline(file, end[0]).encode()
    if begin[0] == end[0]:
        code = (text[: begin[1]] + text[end[1]:]).decode("utf-8", "replace").strip()
    elif not text[: end[1]].strip().startswith(b".cache"):
        return None
    else:
        code = text[end[1]:].decode("utf-8", "replace").strip()
    return _replace_line_edit(end[0], code.encode(), "tf-cache", None)
