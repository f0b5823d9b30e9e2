"""Read rendered tests as a definition has them, wherever the renderer puts a line.

What several definitions share stands in a base class of theirs, and a reference and an
interface are named after the first definition that has them. When a definition joins its
op_type, lines move and names change, and each test checks what it did.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from copy import copy

Body = Sequence[ast.stmt]
_AXES = "axes"
# what the renderer names; all other names are what the tests look for
_REFERENCE, _INTERFACE = "reference_", "INTERFACE_"


def as_collected(
    old: Body, new: Body, was: Body, now: Body
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return what differs of two modules, each class of tests with what it inherits.

    `old` and `new` are all statements of both sides, `was` and `now` those that the other
    side has not. A name of `old` that `new` lacks, and has under another name with the
    same content, is changed to that one; statements of `was` are changed in place.
    """
    _rename(was, _renamed(old, new, was, now))
    return _flat(old, was), _flat(new, now)


def _renamed(old: Body, new: Body, was: Body, now: Body) -> dict[str, str]:
    """Return old name → new name of what has the same content under another name."""
    before, after = ({n for n, _ in _named(body)} for body in (old, new))
    fresh = {content: name for name, content in _named(now) if name not in before}
    return {
        name: fresh[content]
        for name, content in _named(was)
        if name not in after and content in fresh
    }


def _named(body: Body) -> Iterator[tuple[str, str]]:
    """Yield the name and the content of what is named after a definition."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) if name.startswith(_REFERENCE):
                nameless = copy(node)
                nameless.name = "_"
                yield name, ast.unparse(nameless)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if (
                name.startswith((_REFERENCE, _INTERFACE))
            ):
                yield name, ast.unparse(value)


def _rename(body: Body, names: Mapping[str, str]) -> None:
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.FunctionDef) and node in body:
            node.name = names.get(node.name, node.name)


def _flat(body: Body, differing: Body) -> list[ast.stmt]:
    """Return the statements that differ; each class of tests holds what it inherits."""
    classes = {node.name: node for node in body if isinstance(node, ast.ClassDef)}
    bases = {
        name: node for name, node in classes.items() if _only_shares(node, classes)
    }
    changed = {id(node) for node in differing}
    used: set[str] = set()
    flat: dict[int, ast.stmt] = {}
    for node in classes.values():
        above = [b.id for b in node.bases if isinstance(b, ast.Name) and b.id in bases]
        if not node.name.startswith("Test") or not above:
            continue
        used.update(above)
        if not changed.isdisjoint([id(node), *(id(bases[name]) for name in above)]):
            flat[id(node)] = _with_inherited(node, bases)
    rest = [
        node
        for node in differing
        if id(node) not in flat
        and not (isinstance(node, ast.ClassDef) and node.name in used)
    ]
    return [*rest, *flat.values()]


def _only_shares(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Return whether a class only holds values for the classes below it."""
    is_plain = all(
        isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        for line in node.body
    )
    is_inner = all(isinstance(b, ast.Name) and b.id in classes for b in node.bases)
    is_bare = not node.name.startswith("Test") and not node.decorator_list
    return is_bare and is_plain and is_inner and len(node.bases) == 1


def _with_inherited(
    node: ast.ClassDef, bases: Mapping[str, ast.ClassDef]
) -> ast.ClassDef:
    values: dict[str, ast.stmt] = {}
    above: list[ast.expr] = []
    lines = list(node.body)
    for base in node.bases:
        if not (isinstance(base, ast.Name) and base.id in bases):
            above.append(base)
            continue
        above += bases[base.id].bases
        for line in bases[base.id].body:
            values.setdefault(_name(line), line)
    for index, line in enumerate(lines):
        inherited = values.pop(_name(line), None) if _name(line) else None
        if inherited is not None and _name(line) == _AXES:
            lines[index] = _merged(inherited, line)
    whole = copy(node)
    whole.bases, whole.body = above, [*values.values(), *lines]
    return whole


def _name(line: ast.stmt) -> str:
    match line:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return ""


def _merged(inherited: ast.stmt, line: ast.stmt) -> ast.stmt:
    """Return the axes of a class, which a rendered test adds to those above it."""
    match inherited, line:
        case (
            ast.Assign(value=ast.Dict(keys=shared, values=sizes)),
            ast.Assign(targets=targets, value=ast.Dict(keys=keys, values=values)),
        ):
            value = ast.Dict([*shared, *keys], [*sizes, *values])
            return ast.Assign(targets, value, lineno=line.lineno)
    return line
