"""Say what changed in a definition as far as it means something to those who use it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache

from generator.dataset.definition import Axis, Definition, Tensor
from generator.dataset.python_source import Unparsable, parse_module
from generator.ops.registry import op_folder, op_specs
from generator.problems.messages import one_line, plural, quote
from generator.rules.constants import resolve_constants
from generator.testing.tolerance import DEFAULTS, EXACT

_SHOWN = 12
_TEXT = 80


@dataclass(frozen=True)
class Difference:
    """Hold one thing that changed: which part of a definition, and in words what.

    `computes` says that something else is computed, called or judged by it; False is
    for texts and tags.
    """

    part: str
    text: str
    computes: bool = True


def compare(old: Definition, new: Definition) -> Iterator[Difference]:
    """Yield everything that changed from one definition to another, in words."""
    same, lines = compare_code(old.reference, new.reference)
    parts: tuple[tuple[str, bool, Iterable[str]], ...] = (
        ("name", False, _becomes(old.name, new.name)),
        ("op_type", True, _becomes(old.op_type, new.op_type)),
        ("axes", True, _members(_sizes(old.axes), _sizes(new.axes))),
        ("inputs", True, _tensors(old.inputs, new.inputs)),
        ("outputs", True, _tensors(old.outputs, new.outputs)),
        ("constraints", True, _listed(old.constraints, new.constraints)),
        ("reference", not same, lines),
        ("tolerances", True, _tolerances(old, new)),
        ("constants", True, _constants(old, new)),
        ("tags", False, _listed(old.tags, new.tags)),
        ("texts", False, _texts(old, new)),
    )
    for part, computes, texts in parts:
        yield from (Difference(part, text, computes) for text in texts)


def _becomes(old: str, new: str) -> Iterator[str]:
    if old != new:
        yield f"{quote(old)} becomes {quote(new)}"


def _members(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name, said in old.items():
        if name not in new:
            yield f"{quote(name)} ({one_line(said)}) is gone"
        elif new[name] != said:
            yield f"{quote(name)}: {one_line(said)} becomes {one_line(new[name])}"
    for name, said in new.items():
        if name not in old:
            yield f"{quote(name)} ({one_line(said)}) is new"


def _sizes(axes: Mapping[str, Axis]) -> dict[str, str]:
    return {n: "variable" if a.value is None else str(a.value) for n, a in axes.items()}


def _tensors(old: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> Iterator[str]:
    yield from _members(_declared(old), _declared(new))
    if [name for name in old if name in new] != [name for name in new if name in old]:
        order = one_line(", ".join(new), 200)
        yield f"the order changed, which callers rely on: now {order}"


def _declared(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    return {
        name: tensor.declared + (" optional" if tensor.optional else "")
        for name, tensor in tensors.items()
    }


def _listed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    yield from (f"{quote(item, 200)} is gone" for item in old if item not in new)
    yield from (f"{quote(item, 200)} is new" for item in new if item not in old)


def _texts(old: Definition, new: Definition) -> Iterator[str]:
    was, now = (
        [d.description, *(x.description for g in groups for x in g.values())]
        for d in (old, new)
        for groups in [(d.axes, d.inputs, d.outputs)]
    )
    if was != now:
        yield "descriptions changed"


def _constants(old: Definition, new: Definition) -> Iterator[str]:
    """Yield constants that kernels will be called with, where they are others now."""
    before = _resolved(old)
    for name, (value, source) in _resolved(new).items():
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


def _tolerances(old: Definition, new: Definition) -> Iterator[str]:
    """Yield outputs that are judged by other tolerances than before."""
    for name, tensor in new.outputs.items():
        now = _judged_by(new.op_type, name, tensor.dtype)
        if name in old.outputs:
            was = _judged_by(old.op_type, name, old.outputs[name].dtype)
            if was != now:
                yield f"{quote(name)} is judged by {now}, which was {was}"
        elif old.outputs:
            yield f"{quote(name)} is judged by {now}"


def _judged_by(op_type: str, output: str, dtype: str) -> str:
    """Return the tolerances that apply, in their order; the first one wins."""
    own = [(said, whom) for name, said, whom in _overrides(op_type) if name == output]
    parts = [one_line(f"{said} for {whom or 'all sources'}", 200) for said, whom in own]
    # one for all sources leaves nothing to the default
    if all(whom for _, whom in own):
        bounds = DEFAULTS.get(dtype, EXACT)
        said = f"rtol {bounds.rtol:g}, atol {bounds.atol:g}"
        said = "exact" if bounds == EXACT else said
        parts.append(f"the default of {one_line(dtype, 40)} ({said})")
    return ", else ".join(parts)


@cache
def _overrides(op_type: str) -> tuple[tuple[str, str, str], ...]:
    """Return of an op module's overrides: the output, the tolerance, for what alone.

    In their order; the module is only read.
    """
    if op_type not in op_specs():
        return ()
    found = []
    for node in ast.walk(ast.parse((op_folder(op_type) / "op.py").read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Name(id="Override"),
                args=[ast.Constant(value=str(output)), tolerance, *_],
                keywords=keywords,
            ):
                whom = [
                    f"{k.arg} {ast.unparse(k.value)}"
                    for k in keywords
                    if k.arg in ("source", "case")
                ]
                found.append((output, ast.unparse(tolerance), ", ".join(whom)))
    return tuple(found)


def compare_code(old: str, new: str) -> tuple[bool, list[str]]:
    """Return whether two references mean the same by their syntax, and what differs.

    The same syntax tree, docstrings aside, means the same. Neither text is executed.
    """
    if old == new:
        return True, []
    before, after = _parts(old), _parts(new)
    if before is None or after is None:
        return False, ["the reference is not Python that can be compared"]
    if list(before.items()) == list(after.items()):
        return True, ["only comments, docstrings or layout of the reference changed"]
    lines = [
        f"{name} changed: {_changed(name, text, after[name])}"
        if name in after
        else f"{name} is gone"
        for name, text in before.items()
        if after.get(name) != text
    ]
    for name, text in after.items():
        if name not in before:
            value = f": {_value(text)}" if name.startswith("constant") else ""
            lines.append(f"{name} is new{value}")
    if not lines:
        lines = ["the order of the reference's statements changed"]
    more = len(lines) - _SHOWN
    return False, lines[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def _parts(source: str) -> dict[str, str] | None:
    """Return the top-level parts of a module: what is bound → its text, normalised."""
    try:
        # a tree of our own: the other is shared, and this one is cut
        tree = deepcopy(parse_module(source))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                body[:] = [n for n in body if not _is_text(n)] or [ast.Pass()]
        parts: dict[str, str] = {}
        for node in tree.body:
            name = _name(node)
            while name in parts:
                name += "'"
            # unparse writes 1e-5 and 0.00001 the same way, as the interpreter reads them
            parts[name] = ast.unparse(node)
        return parts
    except (Unparsable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_text(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _name(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return f"function {quote(name)}"
        case ast.ClassDef(name=name):
            return f"class {quote(name)}"
        case ast.Import() | ast.ImportFrom():
            return f"import {quote(ast.unparse(node), _TEXT)}"
        case ast.Assign(targets=[target]) | ast.AnnAssign(target=target):
            return f"constant {quote(ast.unparse(target))}"
    return f"statement {quote(ast.unparse(node).splitlines()[0], _TEXT)}"


def _changed(name: str, old: str, new: str) -> str:
    if name.startswith("constant"):
        return f"{_value(old)} becomes {_value(new)}"
    was, now = old.splitlines(), new.splitlines()
    pairs = [(a.strip(), b.strip()) for a, b in zip(was, now, strict=False) if a != b]
    if len(was) == len(now) and len(pairs) <= 2:
        shown = (f"{quote(a, _TEXT)} becomes {quote(b, _TEXT)}" for a, b in pairs)
        return "; ".join(shown)
    come, gone = Counter(now) - Counter(was), Counter(was) - Counter(now)
    new_lines = f"{plural(come.total(), 'line')} of {len(now)} new"
    return f"{new_lines}, {plural(gone.total(), 'line')} gone"


def _value(text: str) -> str:
    return one_line(text.partition("=")[2].strip() or text, _TEXT)
