"""Read the source of a reference without importing it."""

from __future__ import annotations

import ast

from generator.ops.registry import op_folder


def reference_text(op_type: str, module: str, **constants: float) -> str:
    """Return the source of a reference, from its first import on.

    Each keyword replaces the value of the top-level constant of that name. Raises
    ValueError if the constant is missing or the source is not ASCII.
    """
    path = op_folder(op_type) / "references" / f"{module}.py"
    source = path.read_text(encoding="utf-8")
    if not source.isascii():
        raise ValueError(f"{module}: ast counts bytes; keep the reference ASCII")
    lines = with_constants(source, **constants).splitlines(keepends=True)
    return "".join(lines[_first_import(ast.parse(source)) - 1 :])


def with_constants(source: str, **constants: float) -> str:
    """Return a source with other values of top-level constants.

    Raises ValueError if a constant is missing.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    for name, number in constants.items():
        value = _constant(tree, name)
        row = value.lineno - 1
        head, tail = lines[row][: value.col_offset], lines[row][value.end_col_offset :]
        lines[row] = f"{head}{number!r}{tail}"
    return "".join(lines)


def _first_import(tree: ast.Module) -> int:
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return node.lineno
    raise ValueError("a reference begins with an import")


def _constant(tree: ast.Module, name: str) -> ast.Constant:
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and [t.id for t in node.targets if isinstance(t, ast.Name)] == [name]
        ):
            return node.value
    raise ValueError(f"no top-level constant {name}")
