"""Say what changed in a definition as far as it means something to those who use it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from generator.dataset.definition import Axis, Definition, Tensor
from generator.dataset.python_source import Unparsable
from generator.ops.registry import op_folder, op_specs
from generator.problems.messages import one_line, quote
from generator.review.code import compare_code
from generator.rules.constants import resolve_constants
from generator.testing.tolerance import DEFAULTS, EXACT, Tolerance

_FOR_ALL = " for all sources"


@dataclass(frozen=True)
class Difference:
    """Hold one thing that changed: which part of a definition, and in words what.

    `computes` says that something else is computed, called or judged by it; False is
    for texts and tags.
    """

    part: str
    text: str
    computes: bool = True

    def as_dict(self) -> dict[str, object]:
        """Return the fields as plain JSON values."""
        return {"part": self.part, "text": self.text, "computes": self.computes}


def compare(old: Definition, new: Definition) -> list[Difference]:
    """Return everything that changed from one definition to another, in words."""
    found: list[Difference] = []
    if old.name != new.name:
        text = f"{quote(old.name)} becomes {quote(new.name)}"
        found.append(Difference("name", text, computes=False))
    if old.op_type != new.op_type:
        text = f"{quote(old.op_type)} becomes {quote(new.op_type)}"
        found.append(Difference("op_type", text))
    found += (Difference("axes", text) for text in _axes(old.axes, new.axes))
    found += (Difference("inputs", text) for text in _tensors(old.inputs, new.inputs))
    found += (
        Difference("outputs", text) for text in _tensors(old.outputs, new.outputs)
    )
    found += (
        Difference("constraints", text)
        for text in _listed(old.constraints, new.constraints)
    )
    same, lines = compare_code(old.reference, new.reference)
    found += (Difference("reference", text, computes=not same) for text in lines)
    found += (Difference("tolerances", text) for text in tolerance_effects(old, new))
    found += (Difference("constants", text) for text in _constants(old, new))
    found += (
        Difference("tags", text, computes=False) for text in _listed(old.tags, new.tags)
    )
    if _texts(old) != _texts(new):
        found.append(Difference("texts", "descriptions changed", computes=False))
    return found


def _texts(definition: Definition) -> list[str]:
    groups = (definition.axes, definition.inputs, definition.outputs)
    inner = [item.description for group in groups for item in group.values()]
    return [definition.description, *inner]


def _axes(old: Mapping[str, Axis], new: Mapping[str, Axis]) -> Iterator[str]:
    for name, axis in old.items():
        if name not in new:
            yield f"{quote(name)} ({_size(axis)}) is gone"
        elif new[name].value != axis.value:
            yield f"{quote(name)}: {_size(axis)} becomes {_size(new[name])}"
    for name, axis in new.items():
        if name not in old:
            yield f"{quote(name)} ({_size(axis)}) is new"


def _size(axis: Axis) -> str:
    return "variable" if axis.value is None else one_line(str(axis.value), 40)


def _tensors(old: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> Iterator[str]:
    for name, tensor in old.items():
        if name not in new:
            yield f"{quote(name)} ({_declared(tensor)}) is gone"
        elif _declared(new[name]) != _declared(tensor):
            yield (f"{quote(name)}: {_declared(tensor)} becomes {_declared(new[name])}")
    for name, tensor in new.items():
        if name not in old:
            yield f"{quote(name)} ({_declared(tensor)}) is new"
    both = [name for name in old if name in new]
    if both != [name for name in new if name in old]:
        order = ", ".join(name for name in new)
        yield f"the order changed, which callers rely on: now {one_line(order, 200)}"


def _declared(tensor: Tensor) -> str:
    optional = " optional" if tensor.optional else ""
    if tensor.shape is None:
        return one_line(f"{tensor.dtype} scalar{optional}")
    return one_line(f"{tensor.dtype}[{', '.join(tensor.shape)}]{optional}")


def _listed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    yield from (f"{quote(item, 200)} is gone" for item in old if item not in new)
    yield from (f"{quote(item, 200)} is new" for item in new if item not in old)


def _constants(old: Definition, new: Definition) -> Iterator[str]:
    """Yield constants that kernels will be called with, where they are others now."""
    before, after = _resolved(old), _resolved(new)
    for name, (value, source) in after.items():
        was, was_source = before.get(name, (None, ""))
        if was != value:
            yield one_line(
                f"kernels are called with {name} = {value!r} ({source}), "
                f"which was {was!r} ({was_source})"
            )


def _resolved(definition: Definition) -> dict[str, tuple[object, str]]:
    spec = op_specs().get(definition.op_type)
    if spec is None:
        return {}
    try:
        constants = resolve_constants(definition, spec)[0]
    except Unparsable:
        return {}
    return {c.name: (c.value, c.source) for c in constants}


def tolerance_effects(old: Definition, new: Definition) -> Iterator[str]:
    """Yield outputs that are judged by other tolerances than before."""
    for name, tensor in new.outputs.items():
        now = _judged_by(new.op_type, name, tensor.dtype)
        if name not in old.outputs:
            if old.outputs:
                yield f"{quote(name)} is judged by {now}"
            continue
        was = _judged_by(old.op_type, name, old.outputs[name].dtype)
        if was != now:
            yield f"{quote(name)} is judged by {now}, which was {was}"


def _judged_by(op_type: str, output: str, dtype: str) -> str:
    """Return the tolerances that apply, in their order; the first one wins."""
    own = [found for found in _overrides(op_type) if found.output == output]
    parts = [found.words for found in own]
    # one for all sources leaves nothing to the default
    if not any(found.is_for_all for found in own):
        default = _bounds(DEFAULTS.get(dtype, EXACT))
        parts.append(f"the default of {one_line(dtype, 40)} ({default})")
    return ", else ".join(parts)


def _bounds(tolerance: Tolerance) -> str:
    if tolerance == EXACT:
        return "exact"
    return f"rtol {tolerance.rtol:g}, atol {tolerance.atol:g}"


@dataclass(frozen=True)
class _Override:
    """Hold what an override says; `is_for_all`: of every source and case."""

    output: str
    words: str
    is_for_all: bool


@cache
def _overrides(op_type: str) -> tuple[_Override, ...]:
    """Return an op module's overrides in their order; the module is only read."""
    if op_type not in op_specs():
        return ()
    try:
        tree = ast.parse((op_folder(op_type) / "op.py").read_text("utf-8"))
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ()
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id != "Override" or len(node.args) < 2:
            continue
        output = node.args[0]
        if isinstance(output, ast.Constant) and isinstance(output.value, str):
            where = [
                f"{k.arg} {ast.unparse(k.value)}"
                for k in node.keywords
                if k.arg in ("source", "case")
            ]
            whom = f" for {', '.join(where)}" if where else _FOR_ALL
            text = one_line(ast.unparse(node.args[1]) + whom, 200)
            found.append(_Override(output.value, text, not where))
    return tuple(found)
