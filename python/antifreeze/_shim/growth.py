"""Finds the statements of a file on which a name grows, and how else the file uses that name."""

import ast
import collections
import functools
import linecache
import re

_GROWING = {"append", "extend", "add", "update", "insert", "appendleft", "extendleft", "setdefault"}
_CACHES = {"lru_cache", "cache"}
_CONTAINERS = (list, dict, set, collections.deque, collections.OrderedDict, collections.Counter)
MAX_STATEMENTS = 3
# A returned name is followed through so many callers.
MAX_RETURN_DEPTH = 2


class Growth:
    """A statement on which a name grows.

    `kind` is `call` (`x.append(value)`), `item` (`x[key] = value`), `sum` (`x += value`), `self` (`x = f(x)`) or
    `cache` (a decorator that remembers results). `node` is the call, the statement or the decorator; `target` is the
    expression that grows. `loops` are the loops around it within its function, outermost first.
    """

    def __init__(self, kind, node, target, statement, function, loops):
        self.kind, self.node, self.target, self.statement = kind, node, target, statement
        self.function, self.loops = function, loops


class Uses:
    """How a file uses a name, apart from the statements on which it grows."""

    def __init__(self):
        # The number of last elements that some statement needs: `x[-20:]`, `random.sample(x, 32)`, `len(x) < 32`.
        self.needs = 0
        # Lines of statements that use more than the last elements.
        self.whole = []
        # The number of first elements that some statement needs: `x[0]`.
        self.first = 0
        # Reads at an unknown position or key: (the expression, its function, the names of the functions that are called
        # in the innermost loop around it).
        self.keys = set()
        # Whether elements are removed, or the name is assigned again, within a loop.
        self.shrinks = False
        # The line of a `backward` call that depends on the name.
        self.backward = None
        # Whether the name is first assigned None.
        self.begins_as_none = False
        # Whether the file tests if a key is in it.
        self.has_membership_test = False


def growth_lines(file, path, scope):
    """Returns the lines on which a name grows: those within loops first, and only those of its function if it has
    any."""
    return [growth.node.lineno for growth in growth_statements(file, path, scope)]


def name_and_key(path):
    """Returns `losses` and `'train'` for `log.losses['train']`. The key is None if there is none."""
    match = re.fullmatch(r"(?:.*\.)?([^.\[\]]+)((?:\[[^\]]*\])*)", path, re.DOTALL)
    if match is None:
        return path.split("[")[0].split(".")[-1], None
    keys = match[2][1:-1].split("][")
    return match[1], keys[-1] or None


def format_key(key):
    """Formats a key as in the name of an entry."""
    return f"{key!r:.30}"


@functools.lru_cache(maxsize=64)
def growth_statements(file, path, scope):
    """Returns the statements on which a name grows, in the order of `growth_lines`."""
    tree = parse_file(file)
    if tree is None:
        return []
    name, key = name_and_key(path)
    finder = _Finder(name)
    finder.visit(tree)
    if key is not None:
        # A different constant key belongs to another entry.
        finder.hits = [hit for hit in finder.hits if _written_key(hit.target) in (None, key)]
    own = [hit for hit in finder.hits if hit.function == scope] or finder.hits
    own.sort(key=lambda hit: (not hit.loops, hit.node.lineno))
    return own[:MAX_STATEMENTS]


def _written_key(target):
    """Returns the key of `x["train"].append(…)` if it is a constant."""
    key = target.slice if isinstance(target, ast.Subscript) else None
    if isinstance(target, ast.Call) and target.args:
        key = target.args[0]
    return format_key(key.value) if isinstance(key, ast.Constant) else None


@functools.lru_cache(maxsize=8)
def parse_file(file):
    """Returns the syntax tree of a file, or None if it cannot be parsed."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def find_uses(file, path, is_container=True):
    """Returns the `Uses` of the name of a container or an array."""
    found = Uses()
    tree = parse_file(file)
    if tree is not None:
        name, key = name_and_key(path)
        _find_uses(tree, name, found, is_container, key=key)
    return found


class _Finder(ast.NodeVisitor):
    def __init__(self, name):
        self._name = name
        self._function = "<module>"
        self._loops = []
        self._statement = None
        self.hits = []

    def _hit(self, kind, node, target):
        hit = Growth(kind, node, target, self._statement, self._function, list(self._loops))
        self.hits.append(hit)

    def visit(self, node):
        if isinstance(node, ast.stmt):
            before, self._statement = self._statement, node
            super().visit(node)
            self._statement = before
        else:
            super().visit(node)

    def visit_FunctionDef(self, node):
        if node.name == self._name:
            for decorator in node.decorator_list:
                if last_name(decorator.func if isinstance(decorator, ast.Call) else decorator) in _CACHES:
                    self._hit("cache", decorator, None)
        before = self._function, self._loops
        self._function, self._loops = node.name, []
        self.generic_visit(node)
        self._function, self._loops = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node):
        self._loops = [*self._loops, node]
        self.generic_visit(node)
        self._loops = self._loops[:-1]

    visit_While = visit_AsyncFor = visit_For

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _GROWING:
            if last_name(_without_setdefault(function.value)) == self._name:
                self._hit("call", node, function.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if last_name(node.target) == self._name:
            self._hit("sum", node, node.target)
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                if isinstance(part, ast.Subscript) and last_name(part.value) == self._name:
                    self._hit("item", node, part.value)
                elif last_name(part) == self._name and self._name in map(last_name, ast.walk(node.value)):
                    self._hit("self", node, part)
        self.generic_visit(node)


def _without_setdefault(node):
    """Returns `x` for `x.setdefault(key, [])`, and any other expression unchanged."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
        return node.func.value
    return node


def last_name(node):
    """Returns the last name of `a`, `a.b` or `a.b[0]`: `a`, `b`, `b`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    return None


def _find_uses(tree, name, found, is_container, depth=0, key=None):
    constants = integer_constants(tree)
    finder = _Finder(name)
    finder.visit(tree)
    # `x[key].append(value)`: a second index refers to the list, not to the dictionary.
    nested = bool(finder.hits) and all(
        hit.kind == "call" and isinstance(hit.target, (ast.Subscript, ast.Call)) for hit in finder.hits
    )
    grows = {id(inner) for hit in finder.hits if hit.target is not None for inner in ast.walk(hit.target)}
    for hit in finder.hits:
        # The right side of `x = cat([x, new])` does not count as a use.
        if hit.kind in ("self", "sum"):
            grows.update(id(inner) for inner in ast.walk(hit.statement))
    context = _Context(constants, nested, is_container, key)
    for statement, function, loop in _statements(tree):
        context.function, context.loop = function, loop
        _uses_in(statement, name, context, grows, found)
    for function, position, line in context.returned:
        for other in _bound_to_result(tree, function, position):
            if other is None or depth >= MAX_RETURN_DEPTH:
                found.whole.append(line)
            elif other != name:
                _find_uses(tree, other, found, is_container, depth + 1)
    _find_backward(tree, name, found)


class _Context:
    """The surroundings of the statement that is searched for uses."""

    def __init__(self, constants, nested, is_container, key=None):
        self.constants, self.nested, self.is_container = constants, nested, is_container
        # The key of the entry, as written; None for the whole container.
        self.key = key
        self.function, self.loop = "<module>", None
        # Functions that return the name: (function, position in a tuple, line).
        self.returned = []

    def called_in_loop(self):
        calls = ast.walk(self.loop) if self.loop is not None else ()
        return frozenset(last_name(node.func) for node in calls if isinstance(node, ast.Call))


def _statements(node, function="<module>", loop=None):
    """Yields (statement, its function, the innermost loop around it), without definitions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _statements(child, child.name, None)
        elif isinstance(child, ast.ClassDef):
            yield from _statements(child, function, None)
        elif isinstance(child, ast.stmt):
            yield child, function, loop
            is_loop = isinstance(child, (ast.For, ast.AsyncFor, ast.While))
            yield from _statements(child, function, child if is_loop else loop)
        elif isinstance(child, (ast.excepthandler, getattr(ast, "match_case", ast.excepthandler))):
            yield from _statements(child, function, loop)


def _bound_to_result(tree, function, position):
    """Returns the names to which calls of a function bind its result, or the element at a position of a returned tuple.
    One of them is None if that is unknown."""
    names, calls = [], 0
    for node in ast.walk(tree):
        calls += isinstance(node, ast.Call) and last_name(node.func) == function
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and last_name(node.value.func) == function:
            target = node.targets[0]
            if position is not None and isinstance(target, (ast.Tuple, ast.List)) and position < len(target.elts):
                target = target.elts[position]
            elif position is not None:
                target = None
            is_name = isinstance(target, (ast.Name, ast.Attribute)) and len(node.targets) == 1
            names.append(last_name(target) if is_name else None)
    return names if names and len(names) == calls else [None]


def integer_constants(tree):
    """Returns name → integer for the names that are assigned once."""
    values, twice = {}, set()
    for node in ast.walk(tree):
        for target, value in assignments(node):
            key = last_name(target)
            if key is None or isinstance(target, ast.Subscript):
                continue
            if key in values:
                twice.add(key)
            values[key] = value
    numbers = {key: value.value for key, value in values.items() if key not in twice and _is_whole_number(value)}
    return numbers


def assignments(node):
    """Yields (target, value) of an assignment, also for `a, b = 1, 2` and annotated fields."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            parts = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            if parts and len(target.elts) == len(node.value.elts):
                yield from zip(target.elts, node.value.elts)
            else:
                yield target, node.value
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value


def _is_whole_number(node):
    return isinstance(node, ast.Constant) and type(node.value) is int


def _number(node, constants):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand, constants)
        return None if inner is None else -inner
    if _is_whole_number(node):
        return node.value
    return constants.get(last_name(node)) if isinstance(node, (ast.Name, ast.Attribute)) else None


def _uses_in(statement, name, context, grows, found):
    """Adds the uses in the expressions of one statement, but not in nested statements."""
    parents, todo, here = {}, [], []
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, (ast.stmt, ast.excepthandler)):
            parents[child] = statement
            todo.append(child)
    while todo:
        node = todo.pop()
        here.append(node)
        for child in ast.iter_child_nodes(node):
            parents[child] = node
            todo.append(child)
    for node in here:
        is_name = isinstance(node, (ast.Name, ast.Attribute)) and last_name(node) == name
        if not is_name or id(node) in grows:
            continue
        if isinstance(node.ctx, ast.Store):
            for target, value in assignments(statement):
                if target is node and isinstance(value, ast.Constant) and value.value is None:
                    found.begins_as_none = True
            found.shrinks = found.shrinks or context.loop is not None
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        if _reads_other_entry(parents.get(node), node, context.key):
            continue
        if isinstance(statement, ast.Return):
            place = _returned_position(statement, node)
            if place is not None:
                context.returned.append((context.function, place[0], statement.lineno))
                continue
        if not _reads_ends_only(node, parents, context, found):
            found.whole.append(statement.lineno)


def _reads_other_entry(parent, node, key):
    """Whether a use of a container reads another entry than that of this key."""
    if key is None or not isinstance(parent, ast.Subscript) or parent.value is not node:
        return False
    return isinstance(parent.slice, ast.Constant) and format_key(parent.slice.value) != key


def _returned_position(statement, node):
    """Returns (position in a tuple or None,) if the name is returned unchanged, else None."""
    value = statement.value
    if value is node:
        return (None,)
    if isinstance(value, ast.Tuple) and any(part is node for part in value.elts):
        return ([part is node for part in value.elts].index(True),)
    return None


def _reads_ends_only(node, parents, context, found):
    """Whether this use reads only elements at the ends, or the length. Records what it needs."""
    parent, constants = parents.get(node), context.constants
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Del):
        found.shrinks = True
        return True
    # `x[key][-1]` of a dictionary of lists refers to the list.
    if context.nested and isinstance(parent, ast.Subscript) and parent.value is node:
        node, parent = parent, parents.get(parent)
        if not isinstance(parent, (ast.Subscript, ast.Call, ast.Attribute)):
            return False
    if isinstance(parent, ast.Subscript) and parent.value is node:
        needs = _elements_from_end(parent.slice, constants)
        if needs is not None:
            found.needs = max(found.needs, needs)
            return True
        if isinstance(parent.slice, ast.Slice):
            return False
        number = _number(parent.slice, constants)
        if number is not None and isinstance(parent.slice, ast.Constant):
            found.first = max(found.first, number + 1)
            return True
        if isinstance(parent.slice, ast.Constant):
            return False
        found.keys.add((ast.unparse(parent.slice), context.function, context.called_in_loop()))
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        function = last_name(parent.func)
        if function == "len":
            compared = parents.get(parent)
            if isinstance(compared, ast.Compare):
                for side in [compared.left, *compared.comparators]:
                    found.needs = max(found.needs, (_number(side, constants) or 0) + 1)
            return True
        if function == "sample" and len(parent.args) > 1:
            # A container that is sampled while it fills is sampled in small parts.
            found.needs = max(found.needs, _number(parent.args[1], constants) or 0)
            return True
    if isinstance(parent, ast.Attribute) and parent.attr in ("clear", "popleft", "pop", "popitem", "remove"):
        found.shrinks = True
        return True
    if isinstance(parent, ast.Attribute) and parent.attr in ("get", "maxlen"):
        return True
    if context.is_container and isinstance(parent, ast.Attribute):
        # No container has this attribute, so the name refers to something else here.
        return not any(hasattr(kind, parent.attr) for kind in _CONTAINERS)
    if isinstance(parent, ast.Compare) and node in parent.comparators:
        # `key in x`.
        found.has_membership_test = True
        return True
    return isinstance(parent, (ast.If, ast.While, ast.UnaryOp, ast.BoolOp))


def _elements_from_end(index, constants):
    """Returns how many elements an index from the end needs, or None for other indices."""
    if isinstance(index, ast.Slice):
        low = _number(index.lower, constants) if index.lower is not None else None
        return -low if low is not None and low < 0 and index.upper is None else None
    number = _number(index, constants)
    return -number if number is not None and number < 0 else None


def _find_backward(tree, name, found):
    """Records whether `backward` is called on a value made from the name, which then needs its graph."""
    called = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            for inner in ast.walk(node.func.value):
                if isinstance(inner, (ast.Name, ast.Attribute)):
                    called.setdefault(last_name(inner), node.lineno)
    made_of = {name}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _reads(node.value, name):
            made_of.update(last_name(target) for target in node.targets)
    for made in made_of:
        # A state that is carried from step to step leads to the loss too, but does not count here.
        if made in called and not (made != name and _is_carried_over(tree, name)):
            found.backward = called[made]


def _reads(node, name):
    return any(isinstance(inner, (ast.Name, ast.Attribute)) and last_name(inner) == name for inner in ast.walk(node))


def _is_carried_over(tree, name):
    finder = _Finder(name)
    finder.visit(tree)
    return any(hit.kind == "self" for hit in finder.hits)
