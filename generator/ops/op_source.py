"""The parsed source of an op_type's `op.py`; the module is never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from generator.ops.registry import BadOpType, op_folder
from kernel_judge.op_names import OP_FUNCTIONS


@dataclass(frozen=True)
class OpSource:
    """Hold the parts of an `op.py`: docstring, imports, and the text after them.

    `on_cpu` lists the providers with a backend that runs without CUDA.
    """

    docstring: str
    imports: tuple[ast.stmt, ...]
    body: str
    functions: tuple[str, ...]
    has_policies: bool = False
    on_cpu: tuple[str, ...] = ()

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the providers with a `<provider>_ground_truth` function."""
        suffix = "_ground_truth"
        return tuple(f[: -len(suffix)] for f in self.functions if f.endswith(suffix))


@cache
def op_source(op_type: str) -> OpSource:
    """Read the module of a registered op_type; it is parsed, never imported.

    Raises BadOpType where it is not Python, or does not begin with imports.
    """
    file = op_folder(op_type) / "op.py"
    try:
        text = file.read_text("utf-8")
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        raise BadOpType(f"The op_type {op_type!r}: {file}: {what}") from error
    is_import = [isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body]
    if not any(is_import):
        raise BadOpType(f"The op_type {op_type!r}: {file} imports nothing.")
    last = max(i for i, found in enumerate(is_import) if found)
    lines = text.splitlines(keepends=True)
    # from the end of the imports on, so that a comment above the first name is kept
    body = "".join(lines[tree.body[last].end_lineno or 0 :]).strip("\n")
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return OpSource(
        docstring=ast.get_docstring(tree) or "",
        imports=tuple(
            n for n, found in zip(tree.body, is_import, strict=True) if found
        ),
        body=body,
        functions=tuple(name for name in OP_FUNCTIONS if name in defined),
        has_policies="POLICIES" in _assigned(tree),
        on_cpu=tuple(_on_cpu(tree)),
    )


def _on_cpu(tree: ast.Module) -> Iterator[str]:
    """Yield the providers whose `<provider>_backends` passes `needs_cuda=False`."""
    suffix = "_backends"
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name.endswith(suffix):
            keywords = [k for k in ast.walk(function) if isinstance(k, ast.keyword)]
            if any(
                k.arg == "needs_cuda"
                and isinstance(k.value, ast.Constant)
                and k.value.value is False
                for k in keywords
            ):
                yield function.name[: -len(suffix)]


def _assigned(tree: ast.Module) -> set[str]:
    """Return the names assigned at the module's top level."""
    targets = [
        target
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}
