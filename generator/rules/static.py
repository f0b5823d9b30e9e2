"""Defects of a reference that a reviewer sees in its source, which is not executed."""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import CodeType

from generator.dataset.definition import LoadedDefinition
from generator.dataset.python_source import (
    Unparsable,
    all_nodes,
    compile_module,
    own_nodes,
)
from generator.ops.registry import op_specs
from generator.problems import Problem, error, note, warning
from generator.problems.messages import did_you_mean, quote
from generator.rules.reference import run_function

REFERENCE_ASSERT = error("""reference-assert: The reference asserts a size that the
    definition's axes contradict.
    Fix: Correct the assert or the axis.
    Finds: `assert head_dim == 64` where head_dim is 128""")
REFERENCE_IN_PLACE = warning("""reference-in-place: The reference writes to an input,
    which callers don't expect.
    Fix: Clone the input and return what changes; or name a buffer that callers pass to
    be filled with _buffer at its end.
    Finds: `x.add_(residual)`, or `cache[i] = k`""")
REFERENCE_GLOBAL = warning("""reference-global: The reference changes state that
    outlives the call.
    Fix: Keep everything in local names; pass a torch.Generator for random numbers.
    Finds: `torch.manual_seed(0)`, or `global calls`""")
REFERENCE_TOKEN_LOOP = note("""reference-token-loop: The reference loops over tokens in
    Python, which is slow for real workloads.
    Fix: Compute all tokens at once, where that reads as well.
    Finds: `for t in range(num_tokens):`""")
REFERENCE_UNDEFINED_NAME = error("""reference-undefined-name: The reference reads a name
    that it neither defines nor imports.
    Fix: Define the helper in the reference, import the module, or correct the name.
    Finds: `_dequantize(x)` without its `def`""")

# what a module or a class body has without binding it
_GIVEN = frozenset(
    (
        *dir(builtins),
        *("__annotations__", "__builtins__", "__file__", "__module__", "__qualname__"),
    )
)
# what binds names, or asks whether they are bound, in ways that no reader can follow
_DYNAMIC = frozenset(("NameError", "exec", "globals", "locals", "setattr", "vars"))
_STORE_NAME = dis.opmap["STORE_NAME"]
_READS = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS")
_GLOBAL_CALLS = frozenset(
    (
        *("manual_seed", "seed", "set_default_device", "set_default_dtype"),
        *("set_float32_matmul_precision", "set_num_threads"),
        "use_deterministic_algorithms",
    )
)
_MUTATORS = frozenset(
    ("add", "append", "clear", "extend", "pop", "setdefault", "update")
)
_LIBRARIES = ("torch", "np", "numpy", "math")
_TOKEN_AXES = frozenset(
    ("M", "num_tokens", "seq_len", "total_kv", "total_q", "total_seq_len")
)


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield the Problems of a reference's source; none where it does not parse."""
    try:
        tree, _ = compile_module(definition.reference)
    except Unparsable:
        return
    yield from _global_state(tree)
    if (run := run_function(definition)) is not None:
        yield from _of_run(definition, run)
    bound, undefined = _names(definition.reference)
    for name, line in undefined.items():
        message = f"Nothing defines {quote(name)}.{did_you_mean(name, bound)}"
        yield REFERENCE_UNDEFINED_NAME.at(message, "reference", line=line)


def _of_run(definition: LoadedDefinition, run: ast.FunctionDef) -> Iterator[Problem]:
    filled = filled_inputs(definition)
    for name, line in _written(run):
        tensor = definition.inputs.get(name)
        if tensor is not None and tensor.shape is not None and name not in filled:
            message = f"`run` writes to its input {quote(name)}."
            yield REFERENCE_IN_PLACE.at(message, "reference", line=line)
    origins = _origins(definition, run)
    for node in _statements(run):
        match node:
            case ast.Assert(ast.BoolOp(ast.And(), tests)):
                yield from _asserts(definition, node.lineno, tests, origins)
            case ast.Assert(test):
                yield from _asserts(definition, node.lineno, [test], origins)
            case ast.For(iter=ast.Call(ast.Name("range"), [_, *_] as arguments)):
                axis = _axis_of(definition, arguments[:2][-1], origins)
                if axis in _TOKEN_AXES and axis in definition.var_axes:
                    message = f"A Python loop goes over the tokens ({quote(axis)})."
                    line = node.lineno
                    yield REFERENCE_TOKEN_LOOP.at(message, "reference", line=line)


def _origins(definition: LoadedDefinition, run: ast.FunctionDef) -> Mapping[str, str]:
    """Return local name → axis, by axis names and by what unpacks a shape."""
    origins = {axis: axis for axis in definition.axes}
    for node in _statements(run):
        bound: dict[str, str | None] = {}
        match node:
            case ast.Assign([ast.Name(name)], value):
                bound[name] = _axis_of(definition, value, {})
            case ast.Assign([ast.Tuple(targets)], value):
                shape = _shape_of(definition, value) or ()
                fits = len(shape) == len(targets)
                for index, target in enumerate(targets):
                    if isinstance(target, ast.Name):
                        bound[target.id] = shape[index] if fits else None
        for name, axis in bound.items():
            # a name bound to something else is not the axis any more
            origins.pop(name, None)
            if axis is not None:
                origins[name] = axis
    return origins


def _shape_of(definition: LoadedDefinition, node: ast.expr) -> tuple[str, ...] | None:
    """Return the axes of `x.shape` where x is an input."""
    match node:
        case ast.Attribute(ast.Name(name), "shape") if name in definition.inputs:
            return definition.inputs[name].shape
    return None


def _axis_of(
    definition: LoadedDefinition, node: ast.expr, origins: Mapping[str, str]
) -> str | None:
    if isinstance(node, ast.Name):
        return origins.get(node.id)
    if isinstance(node, ast.Subscript):
        shape = _shape_of(definition, node.value)
        index = _integer(node.slice)
        if shape and index is not None and -len(shape) <= index < len(shape):
            return shape[index]
    return None


def _integer(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(int() as value) if type(value) is int:
            return value
        case ast.UnaryOp(ast.USub(), ast.Constant(int() as value)):
            return -value
    return None


def _asserts(
    definition: LoadedDefinition,
    line: int,
    tests: list[ast.expr],
    origins: Mapping[str, str],
) -> Iterator[Problem]:
    sizes = definition.const_axes
    for test in tests:
        match test:
            case ast.Compare(left, [ast.Eq()], [right]):
                sides = (left, right)
            case _:
                continue
        axes = [_axis_of(definition, side, origins) for side in sides]
        values = [
            _integer(side) if axis is None else sizes.get(axis)
            for side, axis in zip(sides, axes, strict=True)
        ]
        stated = axes[0] or axes[1]
        if stated and None not in values and values[0] != values[1]:
            message = f"The assert can't hold: the axis {quote(stated)} is "
            message += f"{sizes[stated]}."
            yield REFERENCE_ASSERT.at(message, "reference", line=line)


def filled_inputs(definition: LoadedDefinition) -> frozenset[str]:
    """Return the names of the inputs that callers pass for `run` to write to.

    The op_type's SPEC says which; where the op_type is not known, they are the inputs
    whose names end in `_buffer`.
    """
    spec = op_specs().get(definition.op_type)
    if spec is not None:
        return frozenset(spec.filled_inputs)
    return frozenset(name for name in definition.inputs if name.endswith("_buffer"))


def written_inputs(function: ast.FunctionDef) -> list[str]:
    """Return the parameters that a function writes to, in the order of the writes."""
    arguments = function.args
    names = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    known = {argument.arg for argument in names}
    writes = (name for name, _ in _written(function) if name in known)
    return list(dict.fromkeys(writes))


# what does not depend on the definition is cached: many share one reference
@lru_cache(maxsize=64)
def _statements(run: ast.FunctionDef) -> tuple[ast.AST, ...]:
    """Return a function's own assignments, asserts and loops."""
    kinds = (ast.Assign, ast.Assert, ast.For)
    return tuple(node for node in own_nodes(run) if isinstance(node, kinds))


@lru_cache(maxsize=64)
def _written(run: ast.FunctionDef) -> tuple[tuple[str, int], ...]:
    """Return (name, line) of the writes to what a function does not bind itself."""
    writes: list[tuple[str | None, int]] = []
    bound = set()
    augmented = set()
    for node in own_nodes(run):
        match node:
            case ast.Name(name, ast.Store()) if id(node) not in augmented:
                bound.add(name)
            case ast.Subscript(ctx=ast.Store()):
                writes.append((_base(node, ast.Subscript), node.lineno))
            case ast.AugAssign(target):
                # comes before its target, which binds nothing new
                augmented.add(id(target))
                if isinstance(target, ast.Name):
                    writes.append((target.id, node.lineno))
            case ast.Call(ast.Attribute(value, method)):
                if method.endswith("_") and not method.endswith("__"):
                    writes.append((_base(value, ast.Subscript), node.lineno))
    return tuple((n, line) for n, line in writes if n is not None and n not in bound)


def _base(node: ast.AST, *kinds: type[ast.Subscript | ast.Attribute]) -> str | None:
    """Return the name that a chain of nodes of these kinds begins with.

    `x` of `x[0][1]`, and of `x.y[0]` where attributes are followed.
    """
    while isinstance(node, kinds):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


@lru_cache(maxsize=64)
def _global_state(tree: ast.Module) -> tuple[Problem, ...]:
    mutable = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, (ast.List, ast.Dict, ast.Set))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    problems = []
    for node in all_nodes(tree):
        what = None
        match node:
            case ast.Global(names):
                what = f"declares {quote(', '.join(names))} global"
            case ast.Call(ast.Attribute(owner, method)):
                root = _base(owner, ast.Attribute, ast.Subscript)
                owned = _base(owner, ast.Subscript)
                if method in _GLOBAL_CALLS and root in (*_LIBRARIES, "random"):
                    what = f"calls {method}, which is for the whole process"
                elif method in _MUTATORS and owned in mutable:
                    what = f"changes the module's {quote(owned or '')}"
            case ast.Attribute(ctx=ast.Store()) | ast.Subscript(ctx=ast.Store()):
                root = _base(node, ast.Attribute, ast.Subscript)
                if root in _LIBRARIES:
                    what = f"assigns to an attribute of {root}"
                elif isinstance(node, ast.Subscript) and root in mutable:
                    what = f"changes the module's {quote(root or '')}"
        if what is not None:
            line = getattr(node, "lineno", 1)
            message = f"The reference {what}."
            problems.append(REFERENCE_GLOBAL.at(message, "reference", line=line))
    return tuple(problems)


def undefined_names(source: str) -> dict[str, int]:
    """Return the names that are read and never bound, with a line that reads each.

    Empty where names may be bound in a way that can't be read: `import *`, `exec`.
    Raises Unparsable.
    """
    return _names(source)[1]


# many definitions have the same reference
@lru_cache(maxsize=64)
def _names(source: str) -> tuple[set[str], dict[str, int]]:
    """Return the names that the module binds, and those that nothing binds.

    The compiler knows which names are global, and leaves out the annotations that are
    never evaluated.
    """
    tree, module = compile_module(source)
    nodes = all_nodes(tree)
    if any(_is_dynamic(node) for node in nodes):
        return set(), {}
    codes = [module]
    for code in codes:
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    bound = set(_stored(module))
    # to disassemble takes time: only where a name may be found, and is not
    # an attribute that a local of another function is called like
    read = {node.id for node in nodes if isinstance(node, ast.Name)} - bound - _GIVEN
    if not any(read & set(code.co_names) - _locals(code) for code in codes):
        return bound, {}
    accesses = [list(_accesses(code)) for code in codes]
    bound |= {n for of in accesses for how, n, _ in of if how == "STORE_GLOBAL"}
    undefined: dict[str, int] = {}
    for of in accesses:
        local = {name for how, name, _ in of if how == "STORE_NAME"}
        for how, name, line in of:
            if how in _READS and name in read - bound - local:
                undefined[name] = min(line, undefined.get(name, line))
    return bound, dict(sorted(undefined.items(), key=lambda item: (item[1], item[0])))


def _stored(code: CodeType) -> Iterator[str]:
    """Yield the names that a module binds."""
    argument = 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        argument = argument << 8 | low
        if operation == _STORE_NAME:
            yield code.co_names[argument]
        if operation != dis.EXTENDED_ARG:
            argument = 0


def _locals(code: CodeType) -> set[str]:
    return {*code.co_varnames, *code.co_cellvars, *code.co_freevars}


def _accesses(code: CodeType) -> Iterator[tuple[str, str, int]]:
    """Yield (instruction, name, line) of what a module, class or function does."""
    lines, line = dict(dis.findlinestarts(code)), code.co_firstlineno
    for instruction in dis.get_instructions(code):
        line = lines.get(instruction.offset) or line
        yield instruction.opname, instruction.argval, line


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.names[0].name == "*"
    return isinstance(node, ast.Name) and node.id in _DYNAMIC
