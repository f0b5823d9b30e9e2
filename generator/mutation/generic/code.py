"""A reference's source with its syntax tree, and edits that change one node alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

# checks of the inputs, imports and messages: no part of the computation
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
_NOT_CODE = ("annotation", "returns", "decorator_list", "type_comment")
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.Tuple)


@dataclass(frozen=True)
class Edit:
    """Replace the source of a node by `text`; `kind` names the defect."""

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

    def text_of(self, node: ast.AST) -> str:
        """Return the source of a node."""
        return ast.get_source_segment(self.source, node) or ""

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

    def with_edit(self, edit: Edit) -> str:
        """Return the whole source with one edit."""
        # column offsets of a tree count UTF-8 bytes
        lines = self.source.encode().splitlines(keepends=True)
        node = edit.node
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before = lines[first][: node.col_offset]
        after = lines[last][node.end_col_offset :]
        changed = before + edit.text.encode() + after
        return b"".join([*lines[:first], changed, *lines[last + 1 :]]).decode()


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
