"""Write the import block of a rendered file: the op's imports and the file's own."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable

from generator import PACKAGES

LINE_LENGTH = 88


def import_block(nodes: Iterable[ast.stmt], ours: Iterable[str]) -> str:
    """Return import statements, sorted and wrapped as ruff does.

    `nodes` are an op module's imports, `ours` are statements as text. `from __future__`
    comes first, then the standard library, installed packages, and this package.
    """
    plain: set[str] = set()
    named: defaultdict[str, set[str]] = defaultdict(set)
    renamed: set[tuple[str, str]] = set()
    for node in [*nodes, *(ast.parse(text).body[0] for text in ours)]:
        if isinstance(node, ast.Import):
            plain.update(ast.unparse(node).removeprefix("import ").split(", "))
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if alias.asname is None:
                    named[node.module].add(alias.name)
                else:
                    renamed.add((node.module, ast.unparse(alias)))
    # ruff keeps `import … as …` members on lines of their own
    statements = [(module, _from(module, {name})) for module, name in renamed]
    statements += [(name, f"import {name}") for name in plain]
    statements += [(module, _from(module, names)) for module, names in named.items()]
    sections: defaultdict[int, list[tuple[bool, str, str]]] = defaultdict(list)
    for module, text in statements:
        key = (text.startswith("from"), module, text)
        sections[_section(module)].append(key)
    blocks = [
        "\n".join(text for _, _, text in sorted(sections[number]))
        for number in sorted(sections)
    ]
    return "\n\n".join(blocks)


def _section(module: str) -> int:
    top = module.split(".")[0]
    if top == "__future__":
        return 0
    if top in sys.stdlib_module_names:
        return 1
    return 3 if top in PACKAGES else 2


def _from(module: str, names: set[str]) -> str:
    ordered = sorted(names, key=_member_order)
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= LINE_LENGTH:
        return line
    members = "".join(f"    {name},\n" for name in ordered)
    return f"from {module} import (\n{members})"


def _member_order(name: str) -> tuple[int, str]:
    """Order members as isort does: CONSTANTS, then Classes, then functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2
    return kind, name
