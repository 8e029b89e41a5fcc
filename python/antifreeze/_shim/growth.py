"""On which lines of a file something of a name grows."""

import ast
import functools
import linecache

_GROWING = {"append", "extend", "add", "update", "insert", "appendleft", "extendleft", "setdefault"}
MOST = 3


@functools.lru_cache(maxsize=64)
def lines_that_grow(file, name, scope):
    """Those within loops first; of the same function, if it has one."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return []
    finder = _Finder(name)
    finder.visit(tree)
    own = [hit for hit in finder.hits if hit[1] == scope] or finder.hits
    own.sort(key=lambda hit: (not hit[2], hit[0]))
    return [line for line, _, _ in own[:MOST]]


class _Finder(ast.NodeVisitor):
    def __init__(self, name):
        self._name = name
        self._function = "<module>"
        self._loops = 0
        # Line, function, and whether it is in a loop.
        self.hits = []

    def _hit(self, node):
        self.hits.append((node.lineno, self._function, self._loops > 0))

    def visit_FunctionDef(self, node):
        before = self._function, self._loops
        self._function, self._loops = node.name, 0
        self.generic_visit(node)
        self._function, self._loops = before

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node):
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_While = visit_AsyncFor = visit_For

    def visit_Call(self, node):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _GROWING:
            if _named(function.value) == self._name:
                self._hit(node)
        self.generic_visit(node)

    def visit_AugAssign(self, node):
        if _named(node.target) == self._name:
            self._hit(node)
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            is_part = isinstance(target, ast.Subscript) and _named(target.value) == self._name
            is_self = _named(target) == self._name and any(
                _named(part) == self._name for part in ast.walk(node.value)
            )
            if is_part or is_self:
                self._hit(node)
        self.generic_visit(node)


def _named(node):
    """The last name of `a`, `a.b` or `a.b[0]`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _named(node.value)
    return None
