"""Names that a reference reads and nothing binds: it would raise NameError."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from functools import lru_cache

from generator.dataset.definition import Definition
from generator.dataset.python_source import Unparsable, all_nodes, parse_module
from generator.problems import Problem
from generator.problems.messages import did_you_mean, quote
from generator.problems.rule import error

REFERENCE_UNDEFINED_NAME = error(
    "reference-undefined-name",
    "The reference reads a name that it neither defines nor imports.",
    "Define the helper in the reference, import the module, or correct the name.",
    "`_dequantize(x)` without its `def`",
)

# what a module or a class body has without binding it
_GIVEN = frozenset(
    (
        *dir(builtins),
        *("__annotations__", "__builtins__", "__file__", "__module__", "__qualname__"),
    )
)
# what binds names, or asks whether they are bound, in ways that no reader can follow
_DYNAMIC = frozenset(("NameError", "exec", "globals", "locals", "setattr", "vars"))


def check(definition: Definition) -> list[Problem]:
    """Return a Problem for each name that is never bound; none where it does not parse.

    The source is read, never executed.
    """
    return [
        REFERENCE_UNDEFINED_NAME.at(message, "reference", line=line)
        for message, line in _messages(definition.reference)
    ]


# Many definitions have the same reference.
@lru_cache(maxsize=64)
def _messages(source: str) -> tuple[tuple[str, int], ...]:
    try:
        bound, found = _names(source)
    except Unparsable:
        return ()
    return tuple(
        (f"Nothing defines {quote(name)}.{did_you_mean(name, bound)}", line)
        for name, line in found.items()
    )


def undefined_names(source: str) -> dict[str, int]:
    """Return the names that are read and never bound, with a line that reads each.

    Empty where names may be bound in a way that can't be read: `import *`, `exec`.
    Raises Unparsable.
    """
    return _names(source)[1]


def _names(source: str) -> tuple[set[str], dict[str, int]]:
    """Return the names that the module binds, and those that nothing binds."""
    tree = parse_module(source)
    nodes = all_nodes(tree)
    if any(_is_dynamic(node) for node in nodes):
        return set(), {}
    top = symtable.symtable(_without_annotations(source, tree), "<reference>", "exec")
    tables = [top]
    for table in tables:
        tables += table.get_children()
    bound = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if (symbol.is_assigned() or symbol.is_imported())
        and (table is top or symbol.is_declared_global())
    }
    found: dict[str, int] = {}
    for table in tables:
        for symbol in table.get_symbols():
            name = symbol.get_name()
            # a symbol of the module that is only read is not said to be global
            is_global = table is top or symbol.is_global()
            if not (is_global and symbol.is_referenced()) or not name.isidentifier():
                continue
            if name not in bound and name not in _GIVEN:
                line = _line(nodes, name, table.get_lineno())
                found[name] = min(line, found.get(name, line))
    return bound, dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


def _is_dynamic(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.names[0].name == "*"
    return isinstance(node, ast.Name) and node.id in _DYNAMIC


def _line(nodes: tuple[ast.AST, ...], name: str, start: int) -> int:
    """Return the first line from `start` on that reads a name."""
    lines = [
        node.lineno
        for node in nodes
        if isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
    ]
    return min((line for line in lines if line >= start), default=start or 1)


def _without_annotations(source: str, tree: ast.Module) -> str:
    """Return the source with the annotations blanked that are never evaluated.

    They are those of local variables, and all of a module that postpones them.
    """
    raw = source.replace("\r\n", "\n").replace("\r", "\n").encode("utf-8")
    lines = [bytearray(line) for line in raw.split(b"\n")]
    for node in _postponed(tree):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        first, last = node.lineno - 1, node.end_lineno - 1
        start, end = node.col_offset, node.end_col_offset
        for row in range(first, last + 1):
            left = start if row == first else 0
            right = end if row == last else len(lines[row])
            lines[row][left:right] = b" " * (right - left)
        if first == last and end - start == 1:
            lines[first][start:end] = b"0"
        else:
            lines[first][start : start + 1] = b"("
            lines[last][end - 1 : end] = b")"
    return b"\n".join(bytes(line) for line in lines).decode("utf-8")


def _postponed(tree: ast.Module) -> Iterator[ast.expr]:
    nodes = all_nodes(tree)
    everywhere = any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in nodes
    )
    evaluated = set() if everywhere else set(_evaluated(tree))
    for node in nodes:
        annotation: ast.expr | None = None
        if isinstance(node, ast.AnnAssign):
            annotation = node.annotation if node not in evaluated else None
        elif everywhere and isinstance(node, ast.arg):
            annotation = node.annotation
        elif everywhere and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            annotation = node.returns
        if annotation is not None:
            yield annotation


def _evaluated(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the annotated assignments of a module and of the classes in it."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.AnnAssign):
            yield node
        yield from _evaluated(node)
