"""Embed references in another file: the same source, one level deeper."""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
import warnings
from functools import lru_cache

from generator.dataset.python_source import all_nodes, parse_module

# what a string of several lines has; one that has none of it, an f-string of Python
# 3.12, is not nested, since the tree of it would differ
_ACROSS_LINES = ('"""', "'''", "\\\n")
_SCOPE_CALLS = {"globals", "locals", "exec", "eval", "vars"}
# a form feed begins the count of columns anew; of very many levels one is too many
_ODD_INDENT = re.compile(r"\f|^[ \t]{80}", re.MULTILINE)


def can_be_nested(reference: str) -> bool:
    """Return whether a reference means the same inside a function as in a module."""
    tree = parse_module(reference)
    is_odd = _ODD_INDENT.search(reference) is not None
    for node in all_nodes(tree):
        # a class body that assigns a name can read its value in the module before, but
        # not that in an enclosing function
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.ClassDef)):
            return False
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" or node.names[0].name == "*":
                return False
        elif isinstance(node, ast.Name):
            stored = isinstance(node.ctx, ast.Store)
            if node.id in _SCOPE_CALLS or (stored and hasattr(builtins, node.id)):
                return False
        elif isinstance(node, (ast.Constant, ast.JoinedStr)):
            is_odd |= node.lineno != node.end_lineno
    # only a string of several lines, or odd white space, can mean something else
    # there: comparing takes as long as all of the above twice
    return not is_odd or _same_tree(tree, nest(reference))


def _same_tree(tree: ast.Module, nested: str) -> bool:
    try:
        with warnings.catch_warnings():
            # about invalid escapes
            warnings.simplefilter("ignore")
            wrapper = ast.parse(f"def reference():\n{nested}\n").body[0]
        assert isinstance(wrapper, ast.FunctionDef)
        return [ast.dump(n) for n in wrapper.body] == [ast.dump(n) for n in tree.body]
    except (SyntaxError, ValueError, RecursionError):
        # a tree too deep to compare may differ
        return False


@lru_cache(maxsize=64)
def nest(source: str, indent: str = "    ") -> str:
    """Return source one level deeper; string literals stay as they are."""
    lines = source_lines(source)
    inside = _lines_inside_strings("\n".join(lines))
    nested = [
        line if number in inside else f"{indent}{line}" if line.strip() else ""
        for number, line in enumerate(lines, 1)
    ]
    return "\n".join(nested).strip("\n")


def source_lines(source: str) -> list[str]:
    """Return lines as Python splits them: form feed and U+2028 end no line."""
    return source.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def _lines_inside_strings(source: str) -> set[int]:
    """Return the numbers of the lines that begin inside a string literal."""
    inside: set[int] = set()
    if not any(mark in source for mark in _ACROSS_LINES):
        return inside  # as for most references: reading tokens takes long
    starts: list[int] = []
    begin = getattr(tokenize, "FSTRING_START", None)
    end = getattr(tokenize, "FSTRING_END", None)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.STRING:
            inside.update(range(token.start[0] + 1, token.end[0] + 1))
        elif token.type == begin:
            starts.append(token.start[0])
        elif token.type == end:
            inside.update(range(starts.pop() + 1, token.end[0] + 1))
    return inside
