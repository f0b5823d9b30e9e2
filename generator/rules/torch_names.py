"""Names of torch that a reference reads: torch has them, where it is installed.

The names are in a data file, so that nothing imports torch. What classes and tensors
have is not judged: no source says of what class a value is.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

from generator.dataset.definition import LoadedDefinition
from generator.dataset.python_source import all_nodes, parse_or_none
from generator.problems import Problem, error
from generator.problems.messages import did_you_mean, quote

REFERENCE_TORCH_NAME = error("""reference-torch-name: The reference reads a name of torch
    that torch does not have.
    Fix: Correct the name, or write what it computes.
    Finds: `torch.softmin2d(x)`""")


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield a Problem for each name of a module of torch that does not exist."""
    version, modules = _known()
    for module, name, line in _missing(definition.reference):
        message = f"torch {version} has no {quote(f'{module}.{name}')}."
        message += did_you_mean(name, modules[module])
        yield REFERENCE_TORCH_NAME.at(message, "reference", line=line)


@cache
def _known() -> tuple[str, Mapping[str, frozenset[str]]]:
    """Return the version of torch, and module → its names."""
    file = Path(__file__).parent / "data" / "torch_names.json"
    known = json.loads(file.read_text("utf-8"))
    modules = {name: frozenset(text.split()) for name, text in known["modules"].items()}
    return known["torch"], modules


# many definitions have the same reference
@lru_cache(maxsize=64)
def _missing(source: str) -> tuple[tuple[str, str, int], ...]:
    """Return (module, name, line) of what is read and does not exist, each once."""
    tree = parse_or_none(source)
    if tree is None:
        return ()
    nodes = all_nodes(tree)
    # `hasattr(torch, "name")` asks first
    asked = {n.value for n in nodes if isinstance(n, ast.Constant)}
    aliases = _aliases(nodes)
    modules = _known()[1]
    missing: dict[tuple[str, str], int] = {}
    for module, name, line in _reads(nodes, aliases):
        known = modules.get(module)
        if known is not None and name not in known and name not in asked:
            missing.setdefault((module, name), line)
    return tuple((module, name, line) for (module, name), line in missing.items())


def _aliases(nodes: Sequence[ast.AST]) -> Mapping[str, str]:
    """Return name → module of torch that imports alone bind to it."""
    paths: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                if root == "torch":
                    whole = alias.name if alias.asname else root
                    paths[alias.asname or root] = whole
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                paths[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    bound = {n.id for n in nodes if isinstance(n, ast.Name) and _is_bound(n)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    return {name: path for name, path in paths.items() if name not in bound}


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _reads(
    nodes: Sequence[ast.AST], aliases: Mapping[str, str]
) -> Iterator[tuple[str, str, int]]:
    """Yield (module, name, line) of attributes and of `from module import name`."""
    for node in nodes:
        if isinstance(node, ast.Attribute):
            path = _path(node.value, aliases)
            if path is not None:
                yield path, node.attr, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    yield node.module, alias.name, node.lineno


def _path(node: ast.expr, aliases: Mapping[str, str]) -> str | None:
    """Return the dotted path of an expression below an imported module."""
    if isinstance(node, ast.Name):
        return aliases.get(node.id)
    if isinstance(node, ast.Attribute):
        before = _path(node.value, aliases)
        return None if before is None else f"{before}.{node.attr}"
    return None
