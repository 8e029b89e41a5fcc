"""Finds the training loop of a script, and how it must begin to continue from a checkpoint."""

import ast
import linecache

from . import event_log, holders, registry
from .growth import last_name, parse_file

_OPTIMIZED = 0x1
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Names for the first step, the best first.
_VARIABLES = ("step", "first_step", "antifreeze_step")


def report_fields(frame, names, count):
    """Returns the field `loop` of a `saved` event, or {} if the script can continue already."""
    with event_log.suppress_faults("finding the training loop"):
        loop = None if registry.resumable else find_training_loop(frame, names, count)
        return {"loop": loop} if loop is not None else {}
    return {}


def find_training_loop(frame, names, count):
    """Returns the outermost loop around a frame of the script that does not create the models itself, or None. `names`
    are the script's names of what is trained, `count` is the number of steps made.

    `line` is the loop's first line in `file`, `indent` the white space before it. `variable` is a name for the step to
    begin at. `code` is the changed first line; None unless the loop counts steps.
    """
    roots = {name.split(".")[0].split("[")[0] for name in names}
    for own in reversed(holders.script_frames(frame)):
        tree = parse_file(own.f_code.co_filename)
        if tree is None or not _uses_names(own, roots):
            continue
        around = _loops_around(tree, own.f_lineno)
        loops = [loop for loop in around if not roots & _assigned_names(loop)]
        if loops:
            return _describe_loop(own, tree, loops[0], len(loops) == 1, count)
    return None


def _uses_names(frame, names):
    """Whether one of the names is a variable of the frame's function or module."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        return any(name in frame.f_globals for name in names)
    return not names.isdisjoint((*code.co_varnames, *code.co_cellvars, *code.co_freevars))


def _loops_around(tree, line):
    """Returns the loops around a line within its function, outermost first."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, (*_LOOPS, *_SCOPES))]
    around = sorted((node for node in blocks if node.lineno <= line <= node.end_lineno), key=lambda node: node.lineno)
    loops = []
    for node in around:
        loops = [*loops, node] if isinstance(node, _LOOPS) else []
    return loops


def _assigned_names(loop):
    return {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _describe_loop(frame, tree, loop, is_only, count):
    file = frame.f_code.co_filename
    text = linecache.getline(file, loop.lineno)
    variable = _unused_name(tree, loop)
    return {
        "file": file, "line": loop.lineno, "indent": text[: len(text) - len(text.lstrip())], "variable": variable,
        "code": _resumed_first_line(frame, text, loop, variable, count) if count > 1 or is_only else None,
    } if variable is not None else None


def _unused_name(tree, loop):
    """Returns a name that the file does not use otherwise. The loop's counter is allowed, because the loop sets it."""
    counter = last_name(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, _SCOPES)}
    used |= {alias.asname or alias.name for node in ast.walk(tree) for alias in getattr(node, "names", ())
             if isinstance(alias, ast.alias)}
    free = (name for name in _VARIABLES if name == counter or name not in used)
    return next(free, None)


def _resumed_first_line(frame, text, loop, variable, count):
    """Returns the first line of `for step in range(600):` changed to begin at a later step; None if the loop does not
    count steps."""
    call = getattr(loop, "iter", None)
    if isinstance(call, ast.Call) and last_name(call.func) == "tqdm" and call.args:
        call = call.args[0]
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
    if not is_range or call.keywords or len(call.args) not in (1, 2) or call.end_lineno != loop.lineno:
        return None
    begin = 0 if len(call.args) == 1 else getattr(call.args[0], "value", None)
    counter = holders.variable_value(frame, loop.target.id) if isinstance(loop.target, ast.Name) else None
    # A step may end when the loop requests the data of the next one.
    if begin not in (0, 1) or type(counter) is not int or count - (counter - begin) not in (0, 1):
        return None
    line, end = text.encode(), call.args[-1]
    first = variable if begin == 0 else f"{variable} + 1"
    until = line[end.col_offset : end.end_col_offset].decode("utf-8", "replace")
    before, after = line[: call.col_offset], line[call.end_col_offset :]
    return f"{before.decode('utf-8', 'replace')}range({first}, {until}){after.decode('utf-8', 'replace')}".strip()
