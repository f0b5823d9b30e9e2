"""Read Python source as a syntax tree; nothing is executed."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType

from generator.problems.messages import one_line

_LEAVES = (ast.Name, ast.Constant)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Unparsable(Exception):
    """Raised for source that is not Python: one sentence, and the line where known."""

    def __init__(self, reason: str, line: int | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


# what reads the definitions once more, as rendering does, finds the trees of 192 texts;
# no more, since a tree takes a hundred times the memory of its text
_TREES = 192


@lru_cache(maxsize=_TREES)
def compile_module(source: str) -> tuple[ast.Module, CodeType]:
    """Return the tree of a module and what it compiles to; raises Unparsable."""
    with _as_unparsable():
        tree = ast.parse(source, "<definition>")
        return tree, compile(tree, "<definition>", "exec", dont_inherit=True)


def parse_module(source: str) -> ast.Module:
    """Return the tree of a module; raises Unparsable.

    The parser takes a `return` outside a function, the compiler does not.
    """
    return compile_module(source)[0]


def fresh_tree(source: str) -> ast.Module:
    """Return a tree of a module that the caller may change; raises Unparsable."""
    compile_module(source)
    with _as_unparsable():
        return ast.parse(source, "<definition>")


def parse_or_none(source: str) -> ast.Module | None:
    """Return the tree of a module, None where it would not compile."""
    try:
        return parse_module(source)
    except Unparsable:
        return None


@lru_cache(maxsize=1024)
def parse_expression(source: str) -> ast.expr:
    """Return the tree of one expression; raises Unparsable."""
    with _as_unparsable():
        tree = ast.parse(source.strip(), "<definition>", "eval")
        compile(tree, "<definition>", "eval", dont_inherit=True)
        return tree.body


# Many definitions have the same reference, and so the same tree.
@lru_cache(maxsize=_TREES)
def own_nodes(function: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes of a function's body in order, without those of inner scopes."""
    nodes = []
    stack = _children(function)[::-1]
    while stack:
        node = stack.pop()
        nodes.append(node)
        if not isinstance(node, _SCOPES):
            stack += _children(node)[::-1]
    return tuple(nodes)


@lru_cache(maxsize=_TREES)
def all_nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return every node of a tree except contexts; cached, since many rules need them."""
    nodes = [tree]
    for node in nodes:
        nodes += _children(node)
    return tuple(nodes)


def _children(node: ast.AST) -> list[ast.AST]:
    """Return the nodes right below one, in order, without contexts (Load, Store).

    ast.iter_child_nodes does this in two generators, which takes twice as long.
    """
    children: list[ast.AST] = []
    if isinstance(node, _LEAVES):  # half of all nodes
        return children
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            children += [child for child in value if isinstance(child, ast.AST)]
        elif isinstance(value, ast.AST) and field != "ctx":
            children.append(value)
    return children


@lru_cache(maxsize=_TREES)
def imported_modules(tree: ast.Module) -> tuple[tuple[str, int], ...]:
    """Return the modules that a tree imports, anywhere in it, each with its line."""
    modules: list[tuple[str, int]] = []
    for node in all_nodes(tree):
        if isinstance(node, ast.Import):
            modules += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules.append(("." * node.level + (node.module or ""), node.lineno))
    return tuple(modules)


def forget_trees() -> None:
    """Give back the memory of all trees: for who has read very many texts once."""
    for function in (compile_module, own_nodes, all_nodes, imported_modules):
        function.cache_clear()


@contextmanager
def _as_unparsable() -> Iterator[None]:
    """Turn everything that reading source can raise into Unparsable."""
    try:
        with warnings.catch_warnings():
            # Odd escapes and `is 1` would be printed as warnings.
            warnings.simplefilter("ignore")
            yield
    except SyntaxError as error:
        reason = one_line(error.msg or "invalid syntax")
        raise Unparsable(reason, error.lineno) from None
    except (RecursionError, MemoryError):
        raise Unparsable("it is nested too deep", None) from None
    except (ValueError, OverflowError) as error:
        raise Unparsable(one_line(str(error)), None) from None
