"""Docstrings of a reference that something may read, so that they are no mere comments."""

from __future__ import annotations

import ast

from generator.dataset.python_source import fresh_tree

_WRAPPERS = frozenset(
    f"torch.{name}{call}"
    for name in ("no_grad", "inference_mode")
    for call in ("", "()")
)
"""Decorators that call a function and hand it to nothing else."""

_Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def may_be_read(old: str, new: str) -> bool:
    """Return whether a docstring that differs may change what a reference computes.

    Both texts have the same syntax tree but for docstrings. `numpy.info` and others read
    that of whatever they get: only a function whose name is used for nothing but calls is
    handed to nothing. Of classes and methods that can't be said. Raises Unparsable.
    """
    tree = fresh_tree(old)
    pairs = zip(_documented(tree), _documented(fresh_tree(new)), strict=True)
    return any(
        ast.get_docstring(was, clean=False) != ast.get_docstring(now, clean=False)
        and (isinstance(was, ast.ClassDef) or _is_handed_on(was, tree))
        for was, now in pairs
    )


def _documented(tree: ast.Module) -> list[_Documented]:
    """Return what has docstrings that can be got by a name; the module has none."""
    return [node for node in ast.walk(tree) if isinstance(node, _Documented)]


def _is_handed_on(
    function: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.AST
) -> bool:
    """Return whether a function may be an argument or a value anywhere."""
    wrappers = {ast.unparse(decorator) for decorator in function.decorator_list}
    if wrappers - _WRAPPERS or (wrappers and _names_torch_anew(tree)):
        return True
    nodes = [*ast.walk(tree)]
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any(
        (
            isinstance(node, ast.Name)
            and node.id == function.name
            and id(node) not in called
        )
        or (isinstance(node, ast.Attribute) and node.attr == function.name)
        for node in nodes
    )


def _names_torch_anew(tree: ast.AST) -> bool:
    """Return whether `torch` is the name of anything but the module."""
    for node in ast.walk(tree):
        match node:
            case ast.alias(asname="torch") | ast.arg(arg="torch"):
                return True
            case ast.ImportFrom(names=names) if any(n.name == "torch" for n in names):
                return True
            case ast.Name(id="torch", ctx=ast.Store()):
                return True
            case ast.FunctionDef(name="torch") | ast.ClassDef(name="torch"):
                return True
    return False
