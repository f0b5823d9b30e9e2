"""A reference's text that evaluates its mutants' expressions beside its own.

That is `beside(0, a + b, lambda: a - b)` for `a + b`. Where the value is that of a
variable `x`, `follow(0, f(x), lambda x: f(x))` stands at its uses; where it is written
into a tensor, `stored` also gets that. Where nothing can be evaluated beside, as in
place of a statement, `reached(1)` stands before it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.mutation.generic.code import Edit, SourceCode
from generator.mutation.generic.purity import (
    BESIDE,
    FOLLOW,
    REACHED,
    STORED,
    can_be_followed,
    is_pure,
)


@dataclass
class _Site:
    """The mutants of one expression, by place; without expressions, those of a statement.

    With a `variable`, the expression is a use of it.
    """

    number: int
    places: list[int] = field(default_factory=list)
    expressions: list[ast.expr] = field(default_factory=list)
    variable: str = ""


@dataclass(frozen=True)
class Instrumented:
    """A text, and the places of the mutants of each of its numbered sites, in order.

    Those of `followed` have a site at each use of what they change.
    """

    text: str
    sites: tuple[tuple[int, ...], ...]
    followed: frozenset[int]


def instrumented(code: SourceCode, edits: Mapping[int, Edit]) -> Instrumented | None:
    """Return a text whose sites are those of edits, by their places.

    An edit's site is the largest expression that it changes. Edits outside of functions
    have no site. None where the text does what can't be followed: it has classes or
    generators, handles exceptions, or reads names of no text.
    """
    if not can_be_followed(code.tree):
        return None
    parents = {c: n for n in ast.walk(code.tree) for c in ast.iter_child_nodes(n)}
    # an edit may be of another parse of the same text
    nodes = {_span(n): n for n in parents if isinstance(n, (ast.expr, ast.stmt))}
    sites: dict[tuple[ast.AST, str], _Site] = {}
    followed: set[int] = set()
    uses_by_node: dict[ast.AST, tuple[str, list[ast.Name]]] = {}
    for place, edit in edits.items():
        node, expression = _site(code, edit, nodes[_span(edit.node)], parents)
        if not any(isinstance(n, ast.FunctionDef) for n in _above(node, parents)):
            continue
        site = sites.setdefault((node, ""), _Site(len(sites)))
        site.places.append(place)
        if expression is None:
            continue
        site.expressions.append(expression)
        if node not in uses_by_node:
            uses_by_node[node] = _uses_of(node, parents)
        name, uses = uses_by_node[node]
        for use in uses:
            if (largest := _largest(use, parents)) is None:
                break
            other = sites.setdefault((largest, name), _Site(len(sites), variable=name))
            # one that holds the variable twice is one site
            if place not in other.places:
                other.places.append(place)
        else:
            followed |= {place} if uses else set()
    copies: dict[int, ast.AST] = {}
    tree = copy.deepcopy(code.tree, copies)
    of_copies: dict[ast.AST, list[_Site]] = {}
    for (node, _), site in sites.items():
        of_copies.setdefault(copies[id(node)], []).append(site)
    # in place: a module itself is no site
    _Planting(of_copies).generic_visit(tree)
    changed = ast.fix_missing_locations(tree)
    return Instrumented(
        ast.unparse(changed) + "\n",
        tuple(tuple(site.places) for site in sites.values()),
        frozenset(followed),
    )


def _span(node: ast.expr | ast.stmt) -> tuple[Any, ...]:
    ends = node.end_lineno, node.end_col_offset
    return type(node), node.lineno, node.col_offset, *ends


def _above(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.AST]:
    while node in parents:
        node = parents[node]
        yield node


def _site(
    code: SourceCode, edit: Edit, node: ast.AST, parents: Mapping[ast.AST, ast.AST]
) -> tuple[ast.AST, ast.expr | None]:
    """Return the node of an edit's site, and the mutant's expression in its place."""
    site: tuple[ast.AST, ast.expr] | None = None
    while not isinstance(node, ast.stmt):
        if _is_value(node, parents) and is_pure(node):
            expression = _changed(code, edit, node)
            if expression is not None and is_pure(expression):
                site = node, expression
        node = parents[node]
    return site or (node, None)


def _largest(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> ast.AST | None:
    """Return the largest expression around a node that has a value of its own."""
    largest = None
    while not isinstance(node, ast.stmt):
        if _is_value(node, parents) and is_pure(node):
            largest = node
        node = parents[node]
    return largest


def _uses_of(
    value: ast.AST, parents: Mapping[ast.AST, ast.AST]
) -> tuple[str, list[ast.Name]]:
    """Return the variable that gets a value, and all places that read it.

    None of these where another value may reach them, or this one may reach others: all
    statements that write the variable, or read it, stand in one block.
    """
    statement = parents[value]
    if not isinstance(statement, ast.Assign) or statement.value is not value:
        return "", []
    (target, *more), block = statement.targets, _block(statement, parents)
    if more or not isinstance(target, ast.Name):
        return "", []
    function = next(n for n in _above(value, parents) if isinstance(n, ast.FunctionDef))
    writes: list[int] = []
    reads: list[tuple[int, ast.Name]] = []
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg == target.id:
            return "", []
        if not isinstance(node, ast.Name) or node.id != target.id:
            continue
        lines = [node, *_above(node, parents)]
        inner = lines[: lines.index(function)]
        if any(isinstance(n, (ast.FunctionDef, ast.Lambda)) for n in inner):
            return "", []
        at = next((n for n, line in enumerate(block) if line in lines), None)
        if at is None:
            return "", []
        if isinstance(node.ctx, ast.Load):
            reads.append((at, node))
            continue
        writer = block[at]
        if not isinstance(writer, ast.Assign) or writer.targets != [node]:
            return "", []
        writes.append(at)
    here, first = block.index(statement), min(writes)
    if any(at <= first for at, _ in reads):
        return "", []
    following = min((at for at in writes if at > here), default=len(block))
    return target.id, [node for at, node in reads if here < at <= following]


def _block(statement: ast.stmt, parents: Mapping[ast.AST, ast.AST]) -> list[ast.stmt]:
    """Return the statements among which one stands."""
    blocks = (v for _, v in ast.iter_fields(parents[statement]) if isinstance(v, list))
    return next(block for block in blocks if statement in block)


def _is_value(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Return whether a call may stand in place of a node."""
    parent = parents[node]
    if not isinstance(node, ast.expr) or isinstance(node, (ast.Slice, ast.Starred)):
        return False
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(parent, ast.Call) and parent.func is node:
        return False
    if isinstance(node, ast.Tuple) and any(isinstance(e, ast.Slice) for e in node.elts):
        return False
    return not any(
        isinstance(n, (ast.arguments, ast.JoinedStr, ast.Assert, ast.Raise))
        for n in _above(node, parents)
    )


def _changed(code: SourceCode, edit: Edit, node: ast.AST) -> ast.expr | None:
    """Return the expression in which an edit is made; None where it has no text."""
    assert isinstance(node, ast.expr)
    try:
        return ast.parse(f"({code.with_edit(edit, node)}\n)", mode="eval").body
    except SyntaxError:
        return None


class _Planting(ast.NodeTransformer):
    """A transformer that puts calls of sites in place of their nodes, inner ones first."""

    def __init__(self, sites: Mapping[ast.AST, list[_Site]]) -> None:
        self._sites = sites
        # values that are written into what a variable holds
        self._into: dict[ast.AST, ast.expr] = {}

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        """Return what stands in a node's place."""
        sites = self._sites.get(node, [])
        plain = copy.deepcopy(node) if any(site.variable for site in sites) else node
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            (target,) = node.targets
            if isinstance(target, ast.Subscript) and _converts(target):
                self._into[node.value] = target.value
        tensor = self._into.get(node)
        self.generic_visit(node)
        for site in sites:
            number: ast.expr = ast.Constant(site.number)
            if isinstance(node, ast.stmt):
                return [ast.Expr(_call(REACHED, number)), node]
            assert isinstance(node, ast.expr)
            assert isinstance(plain, ast.expr)
            others = [_lambda(expression) for expression in site.expressions]
            if site.variable:
                node = _call(FOLLOW, number, node, _lambda(plain, site.variable))
            elif tensor is not None:
                node = _call(STORED, number, node, _lambda(tensor), *others)
            else:
                node = _call(BESIDE, number, node, *others)
        return node


def _converts(target: ast.Subscript) -> bool:
    """Return whether a tensor takes values of any dtype there: not by tensors of places."""
    places = target.slice
    each = places.elts if isinstance(places, ast.Tuple) else [places]
    plain = all(isinstance(place, (ast.Slice, ast.Constant)) for place in each)
    return plain and isinstance(target.value, ast.Name)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [*arguments], [])


def _lambda(body: ast.expr, *names: str) -> ast.Lambda:
    arguments = [ast.arg(name) for name in names]
    return ast.Lambda(ast.arguments([], arguments, None, [], [], None, []), body)
