"""Defects of a reference that a reviewer sees in its source, which is not executed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from generator.dataset.definition import Definition
from generator.dataset.python_source import (
    Unparsable,
    all_nodes,
    own_nodes,
    parse_module,
)
from generator.ops.registry import op_specs
from generator.problems import Problem
from generator.problems.messages import quote
from generator.problems.rule import Rule, error, note, warning
from generator.rules.reference import run_function

REFERENCE_ASSERT = error(
    "reference-assert",
    "The reference asserts a size that the definition's axes contradict.",
    "Correct the assert or the axis.",
    "`assert head_dim == 64` where head_dim is 128",
)
REFERENCE_IN_PLACE = warning(
    "reference-in-place",
    "The reference writes to an input, which callers don't expect.",
    "Clone the input and return what changes; or name a buffer that callers pass to be "
    "filled with _buffer at its end.",
    "`x.add_(residual)`, or `cache[i] = k`",
)
REFERENCE_GLOBAL = warning(
    "reference-global",
    "The reference changes state that outlives the call.",
    "Keep everything in local names; pass a torch.Generator for random numbers.",
    "`torch.manual_seed(0)`, or `global calls`",
)
REFERENCE_TOKEN_LOOP = note(
    "reference-token-loop",
    "The reference loops over tokens in Python, which is slow for real workloads.",
    "Compute all tokens at once, where that reads as well.",
    "`for t in range(num_tokens):`",
)


_GLOBAL_CALLS = frozenset(
    (
        "manual_seed",
        "seed",
        "set_default_device",
        "set_default_dtype",
        "set_float32_matmul_precision",
        "set_num_threads",
        "use_deterministic_algorithms",
    )
)
_MUTATORS = frozenset(
    ("add", "append", "clear", "extend", "pop", "setdefault", "update")
)
_TOKEN_AXES = frozenset(
    ("M", "num_tokens", "seq_len", "total_kv", "total_q", "total_seq_len")
)


def check(definition: Definition) -> list[Problem]:
    """Return the Problems of a reference's source; none where it does not parse."""
    try:
        tree = parse_module(definition.reference)
    except Unparsable:
        return []
    run = run_function(definition)
    found = [*_of_module(tree)]
    if run is not None:
        origins = _origins(definition, run)
        found += _asserts(definition, run, origins)
        found += _writes(definition, run)
        found += _token_loops(definition, run, origins)
    return [
        rule.problem(definition.path, message, pointer="/reference", line=line)
        for rule, line, message in found
    ]


Found = tuple[Rule, int, str]


def _origins(definition: Definition, run: ast.FunctionDef) -> Mapping[str, str]:
    """Return local name → axis, by axis names and by what unpacks a shape."""
    origins = {axis: axis for axis in definition.axes}
    for node in own_nodes(run):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target = node.targets[0]
        if isinstance(target, ast.Name):
            axis = _axis_of(definition, node.value, {})
            # a name bound to something else is not the axis any more
            origins.pop(target.id, None)
            if axis is not None:
                origins[target.id] = axis
        elif isinstance(target, ast.Tuple):
            shape = _shape_of(definition, node.value)
            names = [t.id if isinstance(t, ast.Name) else "" for t in target.elts]
            for index, name in enumerate(names):
                origins.pop(name, None)
                if shape is not None and len(shape) == len(names) and name:
                    origins[name] = shape[index]
    return origins


def _shape_of(definition: Definition, node: ast.expr) -> tuple[str, ...] | None:
    """Return the axes of `x.shape` where x is an input."""
    if (
        isinstance(node, ast.Attribute)
        and node.attr == "shape"
        and isinstance(node.value, ast.Name)
        and node.value.id in definition.inputs
    ):
        return definition.inputs[node.value.id].shape
    return None


def _axis_of(
    definition: Definition, node: ast.expr, origins: Mapping[str, str]
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
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    inner = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    if isinstance(inner, ast.Constant) and type(inner.value) is int:
        return -inner.value if negative else inner.value
    return None


def _asserts(
    definition: Definition, run: ast.FunctionDef, origins: Mapping[str, str]
) -> Iterator[Found]:
    sizes = definition.const_axes

    def value(node: ast.expr) -> tuple[str | None, int | None]:
        axis = _axis_of(definition, node, origins)
        return axis, sizes.get(axis) if axis is not None else _integer(node)

    for node in own_nodes(run):
        if not isinstance(node, ast.Assert):
            continue
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
            continue
        for test in tests:
            if not isinstance(test, ast.Compare) or len(test.ops) != 1:
                continue
            (left_axis, left), (right_axis, right) = (
                value(test.left),
                value(test.comparators[0]),
            )
            if not isinstance(test.ops[0], ast.Eq) or left is None or right is None:
                continue
            if left != right and (left_axis or right_axis):
                axis = left_axis or right_axis or ""
                message = f"The assert can't hold: the axis {quote(axis)} is "
                yield REFERENCE_ASSERT, node.lineno, f"{message}{sizes[axis]}."


def filled_inputs(definition: Definition) -> frozenset[str]:
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
    found = (name for name, _ in _written(function) if name in known)
    return list(dict.fromkeys(found))


def _writes(definition: Definition, run: ast.FunctionDef) -> Iterator[Found]:
    """Yield what writes to an input; a name that is bound anew is no input any more."""
    filled = filled_inputs(definition)
    for name, line in _written(run):
        tensor = definition.inputs.get(name)
        if tensor is not None and tensor.shape is not None and name not in filled:
            message = f"`run` writes to its input {quote(name)}."
            yield REFERENCE_IN_PLACE, line, message


@lru_cache(maxsize=64)
def _written(run: ast.FunctionDef) -> tuple[tuple[str, int], ...]:
    """Return (name, line) of the writes to what a function does not bind itself."""
    nodes = own_nodes(run)
    found: list[tuple[str, int]] = []
    bound = set()
    augmented = set()
    for node in nodes:
        name = None
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store) and id(node) not in augmented:
                bound.add(node.id)
        elif isinstance(node, ast.Subscript):
            name = _base(node) if isinstance(node.ctx, ast.Store) else None
        elif isinstance(node, ast.AugAssign):
            # comes before its target, which binds nothing new
            augmented.add(id(node.target))
            if isinstance(node.target, ast.Name):
                name = node.target.id
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method = node.func.attr
            if method.endswith("_") and not method.endswith("__"):
                name = _base(node.func.value)
        if name is not None:
            found.append((name, getattr(node, "lineno", run.lineno)))
    return tuple((name, line) for name, line in found if name not in bound)


def _base(node: ast.expr) -> str | None:
    """Return the name that a chain of subscripts begins with: `x` of `x[0][1]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _token_loops(
    definition: Definition, run: ast.FunctionDef, origins: Mapping[str, str]
) -> Iterator[Found]:
    for node in own_nodes(run):
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call):
            continue
        function, arguments = node.iter.func, node.iter.args
        if isinstance(function, ast.Name) and function.id == "range" and arguments:
            axis = _axis_of(definition, arguments[min(1, len(arguments) - 1)], origins)
            if axis in _TOKEN_AXES and axis in definition.var_axes:
                message = f"A Python loop goes over the tokens ({quote(axis or '')})."
                yield REFERENCE_TOKEN_LOOP, node.lineno, message


@lru_cache(maxsize=64)
def _of_module(tree: ast.Module) -> tuple[Found, ...]:
    """Return what does not depend on the definition: many share one reference."""
    return tuple(_global_state(tree))


def _global_state(tree: ast.Module) -> Iterator[Found]:
    mutable = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, (ast.List, ast.Dict, ast.Set))
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in all_nodes(tree):
        what = None
        if isinstance(node, ast.Global):
            what = f"declares {quote(', '.join(node.names))} global"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, method = node.func.value, node.func.attr
            root = _root(owner)
            if method in _GLOBAL_CALLS and root in ("torch", "np", "numpy", "random"):
                what = f"calls {method}, which is for the whole process"
            elif method in _MUTATORS and _base(owner) in mutable:
                what = f"changes the module's {quote(_base(owner) or '')}"
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(
            node.ctx, ast.Store
        ):
            root = _root(node)
            if root in ("torch", "np", "numpy", "math"):
                what = f"assigns to an attribute of {root}"
            elif isinstance(node, ast.Subscript) and root in mutable:
                what = f"changes the module's {quote(root or '')}"
        if what is not None:
            line = getattr(node, "lineno", 1)
            yield REFERENCE_GLOBAL, line, f"The reference {what}."


def _root(node: ast.expr) -> str | None:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
