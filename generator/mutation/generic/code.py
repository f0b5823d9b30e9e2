"""A reference's source with its syntax tree, and edits that change one node alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

# checks of the inputs, imports and messages: no part of the computation
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
_NOT_CODE = ("annotation", "returns", "decorator_list", "type_comment")
# to a statement: of each one on the way, the field and the place there
Path = tuple[tuple[str, int], ...]
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.Tuple)


@dataclass(frozen=True)
class Edit:
    """A node whose source becomes `text`; `kind` names the defect."""

    kind: str
    node: ast.expr | ast.stmt
    text: str


@dataclass(frozen=True)
class SourceCode:
    """A source and the nodes of its computation, in the order of the source."""

    source: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @classmethod
    def parse(cls, source: str) -> SourceCode:
        """Parse a source. Raises SyntaxError or ValueError if it is not Python."""
        tree = ast.parse(source)
        return cls(source, tree, tuple(_computation(tree)))

    def find(self, *kinds: type[Any]) -> Iterator[Any]:
        """Yield the nodes of the given types."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """Return the source of a node."""
        first, last = self.span(node)
        return self.bytes[first:last].decode()

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Return where a node's source begins and ends in `bytes`."""
        (first, begin), (last, end) = _start(node), _end(node)
        return self._starts[first] + begin, self._starts[last] + end

    @cached_property
    def paths(self) -> Mapping[ast.AST, Path]:
        """Return where the innermost statement around each node stands in the tree."""
        return dict(_paths(self.tree, ()))

    @cached_property
    def bytes(self) -> bytes:
        """Return the source in UTF-8: column offsets of a tree count its bytes."""
        return self.source.encode()

    @cached_property
    def _starts(self) -> list[int]:
        """Return where each line begins; lines count from 1."""
        lines = self.bytes.splitlines(keepends=True)
        return [0, *accumulate(map(len, lines), initial=0)]

    def with_edits(self, edits: Iterable[Edit]) -> str:
        """Return the whole source with edits. Raises ValueError where two overlap."""
        ordered = sorted(edits, key=lambda edit: _start(edit.node), reverse=True)
        for later, earlier in pairwise(ordered):
            if _end(earlier.node) > _start(later.node):
                raise ValueError("two edits overlap")
        code = self
        for edit in ordered:
            # what lies before an edit keeps its place
            code = replace(code, source=code.with_edit(edit))
        return code.source

    def with_edit(self, edit: Edit, within: ast.expr | None = None) -> str:
        """Return the source with one edit: the whole, or that of an expression around it."""
        text, new = self.bytes, edit.text.encode()
        first, last = (0, len(text)) if within is None else self.span(within)
        begin, end = self.span(edit.node)
        if new.isdigit() and text[end:].startswith(b"."):
            # `4.abs` is no number and no attribute
            new = b"(" + new + b")"
        return (text[first:begin] + new + text[end:last]).decode()


def at_path(tree: ast.AST, path: Path) -> ast.AST:
    """Return the statement of a tree that stands at a path."""
    for field, place in path:
        tree = getattr(tree, field)[place]
    return tree


def rewritten(node: ast.expr | ast.stmt, **fields: Any) -> str:
    """Return the source of a node with some fields replaced, in brackets if needed."""
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return written(changed)


def written(node: ast.expr | ast.stmt) -> str:
    """Return the source of a new node, in brackets if the context could split it."""
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    atom = isinstance(node, _ATOMS) or not isinstance(node, ast.expr)
    bare = isinstance(node, (ast.Tuple, ast.Slice, ast.UnaryOp)) and text[0] != "("
    if isinstance(node, ast.Slice) or (atom and not bare):
        return text
    return f"({text})"


def _paths(node: ast.AST, path: Path) -> Iterator[tuple[ast.AST, Path]]:
    for field, value in ast.iter_fields(node):
        parts = value if isinstance(value, list) else [value]
        for place, part in enumerate(parts):
            if isinstance(part, ast.AST):
                inner = (*path, (field, place)) if isinstance(part, ast.stmt) else path
                yield part, inner
                yield from _paths(part, inner)


def _start(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr | ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _computation(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the descendants of a node in the order of the source, code alone."""
    for name, value in ast.iter_fields(node):
        if name in _NOT_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield child
                yield from _computation(child)


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether a node computes nothing: a check, an import, a docstring."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If) and not node.orelse:
        return all(isinstance(line, (ast.Raise, ast.Assert)) for line in node.body)
    return isinstance(node, _LEFT_ALONE)
