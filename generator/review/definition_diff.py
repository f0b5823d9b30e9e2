"""Say what changed in a definition as far as it means something to those who use it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby, zip_longest

from generator.dataset.definition import LoadedAxis, LoadedDefinition, LoadedTensor
from generator.dataset.python_source import Unparsable, fresh_tree
from generator.ops.registry import op_folder, op_specs
from generator.problems.messages import one_line, quote
from generator.review.docstrings import may_be_read
from generator.review.line_diff import GONE, NEW, DiffLine, line_diff
from generator.rules.basis import from_tags
from generator.rules.constants import Constant, resolve_constants
from generator.rules.screen import screen
from kernel_judge.comparison.tolerance import DEFAULTS, EXACT

_SHOWN = 12
_TEXT = 80
_ALL = "all sources"


@dataclass(frozen=True)
class Difference:
    """One thing that changed: which part of a definition, and in words what.

    `computes` says that something else is computed, called or judged by it; False is
    for texts and tags.
    """

    part: str
    text: str
    computes: bool = True


def compare(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[Difference]:
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
        ("order", True, _order(old, new)),
        ("tags", from_tags(old) != from_tags(new), _listed(old.tags, new.tags)),
        ("texts", False, _texts(old, new)),
    )
    for part, computes, texts in parts:
        yield from (Difference(part, text, computes) for text in texts)


def _becomes(old: str, new: str) -> Iterator[str]:
    if old != new:
        yield f"{quote(old)} becomes {quote(new)}"


def _members(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        was, now = old.get(name), new.get(name)
        if now is None:
            yield f"{quote(name)} ({one_line(was or '')}) is gone"
        elif was is None:
            yield f"{quote(name)} ({one_line(now)}) is new"
        elif was != now:
            yield f"{quote(name)}: {one_line(was)} becomes {one_line(now)}"


def _sizes(axes: Mapping[str, LoadedAxis]) -> dict[str, str]:
    return {n: "variable" if a.value is None else str(a.value) for n, a in axes.items()}


def _tensors(
    old: Mapping[str, LoadedTensor], new: Mapping[str, LoadedTensor]
) -> Iterator[str]:
    yield from _members(_declared(old), _declared(new))
    if [name for name in old if name in new] != [name for name in new if name in old]:
        order = one_line(", ".join(new), 200)
        yield f"the order changed, which callers rely on: now {order}"


def _declared(tensors: Mapping[str, LoadedTensor]) -> dict[str, str]:
    return {
        name: tensor.declared
        + (" optional" if tensor.optional else "")
        + (f" drawn from {tensor.domain}" if tensor.domain else "")
        for name, tensor in tensors.items()
    }


def _listed(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    was, now = set(old), set(new)
    yield from (f"{quote(item, 200)} is gone" for item in old if item not in now)
    yield from (f"{quote(item, 200)} is new" for item in new if item not in was)


def _texts(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    if _described(old) != _described(new):
        yield "descriptions changed"


def _described(d: LoadedDefinition) -> list[str]:
    parts = (part for group in (d.axes, d.inputs, d.outputs) for part in group.values())
    return [d.description, *(part.description for part in parts)]


def _constants(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield constants that kernels will be called with, where they are others now."""
    before, after = constants_of(old), constants_of(new)
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name), after.get(name)
        if was is None or now is None or was.value != now.value:
            shown = [f"{c.value!r} ({c.source})" if c else "none" for c in (now, was)]
            yield one_line(
                f"kernels are called with {name} = {shown[0]}, which was {shown[1]}"
            )


def _order(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
    """Yield where axes or constraints are the same ones, and a run's basis is another."""
    for what, was, now in (
        ("axes", list(old.axes), list(new.axes)),
        ("constraints", old.constraints, new.constraints),
    ):
        if was != now and set(was) == set(now):
            yield f"the {what} are in another order, or one is there twice"


def constants_of(definition: LoadedDefinition) -> Mapping[str, Constant]:
    """Return the constants that kernels are called with, by name."""
    spec = op_specs().get(definition.op_type)
    if spec is None:
        return {}
    try:
        constants = resolve_constants(definition, spec)[0]
    except Unparsable:
        return {}
    return {constant.name: constant for constant in constants}


def _tolerances(old: LoadedDefinition, new: LoadedDefinition) -> Iterator[str]:
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
    bounds = DEFAULTS.get(dtype, EXACT)
    default = f"the default of {dtype} (rtol {bounds.rtol:g}, atol {bounds.atol:g})"
    overrides = [
        one_line(text, 200) for name, text in _overrides(op_type) if name == output
    ]
    # one for all sources leaves nothing to the default
    rest = (
        []
        if any(text.endswith(_ALL) for text in overrides)
        else [one_line(default, 100)]
    )
    return ", else ".join([*overrides, *rest])


@cache
def _overrides(op_type: str) -> tuple[tuple[str, str], ...]:
    """Return of an op's overrides the output and, for what, the tolerance; in order.

    The op's module is only read.
    """
    differences = []
    path = op_folder(op_type) / "op.py" if op_type in op_specs() else None
    for node in ast.walk(ast.parse(path.read_text("utf-8") if path else "")):
        match node:
            case ast.Call(
                func=ast.Name(id="Override"),
                args=[ast.Constant(value=str(output)), tolerance, *_],
                keywords=keys,
            ):
                wanted = [k for k in keys if k.arg != "reason"]
                whom = ", ".join(f"{k.arg} {ast.unparse(k.value)}" for k in wanted)
                differences.append(
                    (output, f"{ast.unparse(tolerance)} for {whom or _ALL}")
                )
    return tuple(differences)


def compare_code(old: str, new: str) -> tuple[bool, list[str]]:
    """Return whether two references mean the same by their syntax, and what differs.

    The same syntax tree, docstrings aside, means the same, unless the text may look at
    itself: at its docstrings, or at the numbers of its lines. Neither text is executed.
    """
    if old == new:
        return True, []
    was, now = _normalised(old), _normalised(new)
    if was is None or now is None:
        return False, ["the reference is not Python that can be compared"]
    may_look = was == now and (screen(old) + screen(new) or may_be_read(old, new))
    if may_look:
        return False, ["the layout of a reference that may read its own text changed"]
    if was == now:
        return True, ["only comments, docstrings or layout of the reference changed"]
    diff = line_diff(was, now)
    if diff is None:
        return False, ["the reference changed, and is too long to be compared"]
    lines = list(_changed_lines(diff))
    more = len(lines) - _SHOWN
    return False, lines[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def _normalised(source: str) -> str | None:
    """Return a text as the interpreter reads it: 1e-5 and 0.00001 are the same then."""
    try:
        tree = fresh_tree(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                body[:] = [n for n in body if not _is_text(n)] or [ast.Pass()]
        return ast.unparse(tree)
    except (Unparsable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _is_text(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
    return False


def _changed_lines(diff: Iterable[DiffLine]) -> Iterator[str]:
    for is_changed, lines in groupby(diff, lambda line: line.kind in (GONE, NEW)):
        sides: dict[str, list[str]] = {GONE: [], NEW: []}
        for line in lines if is_changed else ():
            if text := line.text.strip():
                sides[line.kind].append(quote(text, _TEXT))
        for was, now in zip_longest(sides[GONE], sides[NEW]):
            if was and now:
                yield f"{was} becomes {now}"
            else:
                yield f"{was} is gone" if was else f"{now} is new"
