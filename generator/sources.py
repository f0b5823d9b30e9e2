"""Source text as data: an op's module, and references embedded in another file."""

from __future__ import annotations

import ast
import builtins
import io
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# what the harness asks an op's module for; all but the first three are optional
OP_FUNCTIONS = (
    "cases",
    "make_inputs",
    "oracle",
    "defined_rows",
    "filled_inputs",
    "peak_bytes",
    "relations",
    "flashinfer_backends",
    "flashinfer_ground_truth",
    "sglang_backends",
    "sglang_ground_truth",
    "pytorch_backends",
    "pytorch_ground_truth",
)
_SCOPE_CALLS = {"globals", "locals", "exec", "eval", "vars"}


@dataclass(frozen=True)
class OpSource:
    """Hold an op's module as text: its docstring, its imports, all that follows.

    `on_cpu` are the providers of which some backend does without CUDA.
    """

    docstring: str
    imports: tuple[ast.stmt, ...]
    body: str
    functions: tuple[str, ...]
    has_policies: bool = False
    on_cpu: tuple[str, ...] = ()

    @property
    def providers(self) -> tuple[str, ...]:
        """Return the providers that the module has an adapter for."""
        suffix = "_ground_truth"
        return tuple(f[: -len(suffix)] for f in self.functions if f.endswith(suffix))


@cache
def op_source(op_type: str) -> OpSource:
    """Read the module of a registered op_type; it is parsed, never imported."""
    text = (Path(__file__).parent / "ops" / f"{op_type}.py").read_text("utf-8")
    tree = ast.parse(text)
    is_import = [isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body]
    first = max(i for i, found in enumerate(is_import) if found) + 1
    lines = text.splitlines(keepends=True)
    # from the end of the imports on, so that a comment above the first name is kept
    body = "".join(lines[tree.body[first - 1].end_lineno or 0 :]).strip("\n")
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
    """Yield the providers whose `<provider>_backends` has one for the CPU.

    That is one made with `needs_cuda=False`, as every op writes it.
    """
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
    """Return the names that a module's top level assigns."""
    targets = [
        target
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def can_be_nested(reference: str) -> bool:
    """Return whether a reference means the same inside a function as in a module."""
    tree = _quietly_parsed(reference)
    for node in ast.walk(tree):
        # the body of a class reads names of a module, but not those of a function,
        # that it assigns as well
        if isinstance(node, (ast.Global, ast.Nonlocal, ast.ClassDef)):
            return False
        if isinstance(node, ast.ImportFrom):
            if node.module == "__future__" or node.names[0].name == "*":
                return False
        elif isinstance(node, ast.Name):
            stored = isinstance(node.ctx, ast.Store)
            if node.id in _SCOPE_CALLS or (stored and hasattr(builtins, node.id)):
                return False
    return _same_tree(tree, nest(reference))


def _same_tree(tree: ast.Module, nested: str) -> bool:
    try:
        wrapper = _quietly_parsed(f"def reference():\n{nested}\n").body[0]
        assert isinstance(wrapper, ast.FunctionDef)
        return [ast.dump(n) for n in wrapper.body] == [ast.dump(n) for n in tree.body]
    except (SyntaxError, ValueError, RecursionError):
        # too deep to compare is too deep to promise
        return False


def _quietly_parsed(source: str) -> ast.Module:
    """Return the tree; odd escapes are the author's business, not our stderr's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def nest(source: str, indent: str = "    ") -> str:
    """Return source text one level deeper, string literals untouched."""
    lines = source_lines(source)
    inside = _lines_inside_strings("\n".join(lines))
    nested = [
        line if number in inside else f"{indent}{line}" if line.strip() else ""
        for number, line in enumerate(lines, 1)
    ]
    return "\n".join(nested).strip("\n")


def source_lines(source: str) -> list[str]:
    """Return lines as Python ends them: a form feed or U+2028 is part of its line."""
    return source.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n")


def _lines_inside_strings(source: str) -> set[int]:
    """Return the numbers of the lines that begin inside a string literal."""
    inside: set[int] = set()
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
