"""Compare two references by their syntax trees: what of it means something else."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from generator.dataset.python_source import Unparsable, parse_module
from generator.problems.messages import one_line, plural, quote

_SHOWN = 12
_TEXT = 80


def compare_code(old: str, new: str) -> tuple[bool, list[str]]:
    """Return whether two references mean the same by their syntax, and what differs.

    The same syntax tree, docstrings aside, means the same. Neither text is executed.
    """
    if old == new:
        return True, []
    before, after = _parts(old), _parts(new)
    if before is None or after is None:
        return False, ["the reference is not Python that can be compared"]
    same = before == after and list(before) == list(after)
    if same:
        return True, ["only comments, docstrings or layout of the reference changed"]
    lines = list(_differences(before, after))
    if not lines:
        lines = ["the order of the reference's statements changed"]
    more = len(lines) - _SHOWN
    return False, lines[:_SHOWN] + ([f"and {more} more"] if more > 0 else [])


def _parts(source: str) -> dict[str, str] | None:
    """Return the top-level parts of a module: what is bound → its syntax as text."""
    try:
        parse_module(source)
        # a tree of our own: the other is shared, and this one is cut
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        parts: dict[str, str] = {}
        for node in tree.body:
            if _is_docstring(node):
                continue
            name = _name(node)
            while name in parts:
                name += "'"
            parts[name] = _dump(node)
        return parts
    except (Unparsable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _name(node: ast.stmt) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return f"function {quote(node.name)}"
    if isinstance(node, ast.ClassDef):
        return f"class {quote(node.name)}"
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return f"import {quote(ast.unparse(node), _TEXT)}"
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return f"constant {quote(ast.unparse(node.targets[0]))}"
    if isinstance(node, ast.AnnAssign):
        return f"constant {quote(ast.unparse(node.target))}"
    return f"statement {quote(ast.unparse(node).splitlines()[0], _TEXT)}"


def _dump(node: ast.stmt) -> str:
    """Return the source that the syntax tree stands for, docstrings left out."""
    for inner in ast.walk(node):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            body[0] = ast.Pass() if len(body) == 1 else body[0]
            if len(body) > 1:
                del body[0]
    # unparse writes 1e-5 and 0.00001 the same way, as the interpreter reads them
    return ast.unparse(node)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    for name, old in before.items():
        if name not in after:
            yield f"{name} is gone"
        elif after[name] != old:
            yield f"{name} changed: {_changed(name, old, after[name])}"
    for name, new in after.items():
        if name not in before:
            value = f": {_value(new)}" if name.startswith("constant") else ""
            yield f"{name} is new{value}"


def _changed(name: str, old: str, new: str) -> str:
    if name.startswith("constant"):
        return f"{_value(old)} becomes {_value(new)}"
    was, now = old.splitlines(), new.splitlines()
    pairs = [(a, b) for a, b in zip(was, now, strict=False) if a != b]
    if len(was) == len(now) and len(pairs) <= 2:
        shown = (
            f"{quote(a.strip(), _TEXT)} becomes {quote(b.strip(), _TEXT)}"
            for a, b in pairs
        )
        return "; ".join(shown)
    from difflib import SequenceMatcher

    if len(was) + len(now) > 2000:
        return f"{len(was)} lines become {len(now)}"
    matcher = SequenceMatcher(None, was, now, autojunk=False)
    kept = sum(block.size for block in matcher.get_matching_blocks())
    return (
        f"{plural(len(now) - kept, 'line')} of {len(now)} new, "
        f"{plural(len(was) - kept, 'line')} gone"
    )


def _value(text: str) -> str:
    return one_line(text.partition("=")[2].strip() or text, _TEXT)
