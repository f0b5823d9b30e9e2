"""A reference's text with its syntax tree, and edits of it that leave the rest alone."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# what a reference says about its inputs, and what it loads: no part of the computation
_LEFT_ALONE = (ast.Assert, ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)
_NOT_CODE = ("annotation", "returns", "decorator_list", "type_comment")
_ATOMS = (ast.Name, ast.Constant, ast.Call, ast.Attribute, ast.Subscript, ast.Tuple)


@dataclass(frozen=True)
class Edit:
    """Replace what is written at a node by another text; `kind` says what it plants."""

    kind: str
    node: ast.expr | ast.stmt
    text: str


@dataclass(frozen=True)
class Code:
    """Hold a text and the nodes of its computation, in the order of the text."""

    source: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]

    @classmethod
    def parse(cls, source: str) -> Code:
        """Read a text. Raises SyntaxError or ValueError where it is no Python."""
        tree = ast.parse(source)
        return cls(source, tree, tuple(_computation(tree)))

    def find(self, *kinds: type[Any]) -> Iterator[Any]:
        """Yield the nodes of some kinds."""
        return (node for node in self.nodes if isinstance(node, kinds))

    def text_of(self, node: ast.AST) -> str:
        """Return what is written at a node."""
        return ast.get_source_segment(self.source, node) or ""

    def with_edit(self, edit: Edit) -> str:
        """Return the whole text with one edit; columns of trees count UTF-8 bytes."""
        lines = self.source.encode().splitlines(keepends=True)
        node = edit.node
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        before = lines[first][: node.col_offset]
        after = lines[last][node.end_col_offset :]
        changed = before + edit.text.encode() + after
        return b"".join([*lines[:first], changed, *lines[last + 1 :]]).decode()


def rewritten(node: ast.expr | ast.stmt, **fields: Any) -> str:
    """Return the text of a node some of whose fields are others.

    An expression is in brackets where the text around could tear it apart.
    """
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return written(changed)


def written(node: ast.expr | ast.stmt) -> str:
    """Return the text of a new node, in brackets where it needs them."""
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    atom = isinstance(node, _ATOMS) or not isinstance(node, ast.expr)
    bare = isinstance(node, (ast.Tuple, ast.Slice, ast.UnaryOp)) and text[0] != "("
    if isinstance(node, ast.Slice) or (atom and not bare):
        return text
    return f"({text})"


def _computation(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one in the order of the text, without what is no code."""
    for name, value in ast.iter_fields(node):
        if name in _NOT_CODE:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_left_alone(child):
                yield child
                yield from _computation(child)


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether a node is a check, a docstring or the like: nothing is computed."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, ast.If) and not node.orelse:
        return all(isinstance(line, (ast.Raise, ast.Assert)) for line in node.body)
    return isinstance(node, _LEFT_ALONE)
