"""Facts read back from a rendered file: the definitions it tests, and their text."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from generator.dataset.python_source import parse_or_none


@lru_cache(maxsize=4)
def rendered_definitions(text: str) -> Mapping[str, str]:
    """Return definition → SHA-256 of the JSON that its test class was rendered from.

    The text is parsed, never executed. The hash is empty for a class without one, and
    the result for a text that is not Python or has no test class.
    """
    tree = parse_or_none(text)
    classes = [] if tree is None else tree.body
    constants = (_constants(node) for node in classes if isinstance(node, ast.ClassDef))
    return MappingProxyType(
        {c["name"]: c.get("sha256", "") for c in constants if "name" in c}
    )


def _constants(node: ast.ClassDef) -> dict[str, str]:
    """Return the class attributes that are literal strings."""
    return {
        target.id: statement.value.value
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
