"""The loop of a script that makes the training steps, and how it has to begin to continue from a checkpoint."""

import ast
import linecache

from . import event_log, holders, registry
from .growth import named, parsed

_OPTIMIZED = 0x1
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Names that the first step may have in the script, the best first.
_VARIABLES = ("step", "first_step", "antifreeze_step")


def report_fields(frame, names, count):
    """What a report of a save says about the loop: nothing where the script can continue already."""
    with event_log.suppress_faults("looking for the training loop"):
        loop = None if registry.resumable else find_training_loop(frame, names, count)
        return {"loop": loop} if loop is not None else {}
    return {}


def find_training_loop(frame, names, count):
    """The outermost loop around a frame of the script that does not make the models in it anew: None where there is
    none. `names` are the script's names of what is trained, `count` is the number of steps made.

    `line` is its first line in `file`, `indent` the white space before it. `variable` is a name for the step to begin
    at. `code` is the line that begins the loop there; None unless the loop counts steps.
    """
    roots = {name.split(".")[0].split("[")[0] for name in names}
    for own in reversed(holders.script_frames(frame)):
        tree = parsed(own.f_code.co_filename)
        if tree is None or not _knows(own, roots):
            continue
        around = _loops_around(tree, own.f_lineno)
        loops = [loop for loop in around if not roots & _assigned_in(loop)]
        if loops:
            return _described(own, tree, loops[0], len(loops) == 1, count)
    return None


def _knows(frame, names):
    """Whether one of these is a name of the frame's own, or of the module that it is."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        return any(name in frame.f_globals for name in names)
    return not names.isdisjoint((*code.co_varnames, *code.co_cellvars, *code.co_freevars))


def _loops_around(tree, line):
    """The loops around a line within its function, outermost first."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, (*_LOOPS, *_SCOPES))]
    around = sorted((node for node in blocks if node.lineno <= line <= node.end_lineno), key=lambda node: node.lineno)
    loops = []
    for node in around:
        loops = [*loops, node] if isinstance(node, _LOOPS) else []
    return loops


def _assigned_in(loop):
    return {node.id for node in ast.walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _described(frame, tree, loop, is_only, count):
    file = frame.f_code.co_filename
    text = linecache.getline(file, loop.lineno)
    variable = _free_name(tree, loop)
    return {
        "file": file, "line": loop.lineno, "indent": text[: len(text) - len(text.lstrip())], "variable": variable,
        "code": _first_line(frame, text, loop, variable, count) if count > 1 or is_only else None,
    } if variable is not None else None


def _free_name(tree, loop):
    """A name that means nothing else in the file; the loop's own counter is about to be set anyway."""
    counter = named(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else None
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, _SCOPES)}
    used |= {alias.asname or alias.name for node in ast.walk(tree) for alias in getattr(node, "names", ())
             if isinstance(alias, ast.alias)}
    free = (name for name in _VARIABLES if name == counter or name not in used)
    return next(free, None)


def _first_line(frame, text, loop, variable, count):
    """The first line of `for step in range(600):` from a later step on; None where the loop does not count steps."""
    call = getattr(loop, "iter", None)
    if isinstance(call, ast.Call) and named(call.func) == "tqdm" and call.args:
        call = call.args[0]
    is_range = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"
    if not is_range or call.keywords or len(call.args) not in (1, 2) or call.end_lineno != loop.lineno:
        return None
    begin = 0 if len(call.args) == 1 else getattr(call.args[0], "value", None)
    counter = holders.variable_value(frame, loop.target.id) if isinstance(loop.target, ast.Name) else None
    # A step may be over when the loop asks for the data of the next one.
    if begin not in (0, 1) or type(counter) is not int or count - (counter - begin) not in (0, 1):
        return None
    line, end = text.encode(), call.args[-1]
    first = variable if begin == 0 else f"{variable} + 1"
    until = line[end.col_offset : end.end_col_offset].decode("utf-8", "replace")
    before, after = line[: call.col_offset], line[call.end_col_offset :]
    return f"{before.decode('utf-8', 'replace')}range({first}, {until}){after.decode('utf-8', 'replace')}".strip()
