"""Render tests that run without this package, with the modules they import beside them.

The modules are copied with `generator` renamed to `reference_support`, `kernel_judge`
to a package in it, and no other change; only those that the chosen op_types need.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import generator
import kernel_judge
from generator.dataset.file_reading import is_file
from generator.ops.registry import op_folder, op_packages

SUPPORT = "reference_support"
"""The package that standalone tests import; its folder lies beside them."""

# package → its folder and its name in the support package
_OWN = {
    "generator": (Path(generator.__file__).parent, SUPPORT),
    "kernel_judge": (Path(kernel_judge.__file__).parent, f"{SUPPORT}.kernel_judge"),
}
# started by name in processes of their own
_STARTED = tuple(
    f"generator.running.{name}_worker" for name in ("sglang", "record", "warm")
)
# in a comment at the margin: where an op's oracle and bounds lie
_MODULE = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")
_INIT = '''"""Support of the rendered reference tests, copied from gen-tests."""
'''


def is_standalone(tests: Path) -> bool:
    """Return whether a folder of rendered tests has a support package."""
    return is_file(tests, f"{SUPPORT}/__init__.py")


def standalone(files: Mapping[str, str]) -> dict[str, str]:
    """Return rendered files that import the support package, and its files."""
    sources = {path: text for path, text in files.items() if path.endswith(".py")}
    written = {**files, **{path: _renamed(text) for path, text in sources.items()}}
    written[f"{SUPPORT}/__init__.py"] = _INIT
    roots = {m for text in sources.values() for m in _imported(text)}
    for module in sorted(_closure({*roots, *_STARTED})):
        path, text = _source(module)
        name = _new_name(module).replace(".", "/")
        is_package = path.name == "__init__.py"
        written[f"{name}/__init__.py" if is_package else f"{name}.py"] = _renamed(text)
    return written


def _closure(modules: set[str]) -> set[str]:
    """Return modules with all modules of ours that they import, and their packages."""
    reached: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in reached or module == "generator":
            continue
        reached.add(module)
        waiting += _imported(_source(module)[1])
        if _is_ours(parent := module.rpartition(".")[0]):
            waiting.append(parent)
    return reached


def _is_ours(module: str) -> bool:
    """Return whether a module belongs to this package or a registered op_type."""
    return any(
        module == package or module.startswith(f"{package}.")
        for package in (*_OWN, *op_packages().values())
    )


@cache
def _imports(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Return the import statements of a source, at any depth, that name ours."""
    return tuple(
        node
        for node in _statements(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and any(map(_is_ours, _names(node)))
    )


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements in a node; no import lies in an expression."""
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)


def _imported(text: str) -> Iterator[str]:
    """Yield the modules of ours that a source imports."""
    for node in _imports(text):
        yield from filter(_is_ours, _names(node))
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if _origin(f"{node.module}.{alias.name}") is not None:
                    yield f"{node.module}.{alias.name}"


@cache
def _origin(module: str) -> Path | None:
    """Return the file of a module of ours, None if there is none; imports nothing."""
    for op_type, package in op_packages().items():
        if module == package or module.startswith(f"{package}."):
            folder, rest = op_folder(op_type), module.removeprefix(package)
            break
    else:
        top = module.partition(".")[0]
        folder, rest = _OWN[top][0], module.removeprefix(top)
    path = folder.joinpath(*rest.split(".")[1:])
    candidates = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in candidates if file.is_file()), None)


def _source(module: str) -> tuple[Path, str]:
    path = _origin(module)
    if path is None:
        raise FileNotFoundError(f"no source of {module}")
    return path, path.read_text("utf-8")


def _new_name(module: str) -> str:
    """Return a module's name in the support package."""
    for op_type, package in op_packages().items():
        if module == package or module.startswith(f"{package}."):
            renamed = f"{SUPPORT}.ops.op_types.{op_type}"
            return f"{renamed}{module.removeprefix(package)}"
    top = module.partition(".")[0]
    return f"{_OWN[top][1]}{module.removeprefix(top)}"


def _renamed(text: str) -> str:
    """Return a source that imports the support package in place of ours."""
    lines = text.split("\n")
    for node in _imports(text):
        row = node.lineno - 1
        for module in filter(_is_ours, _names(node)):
            pattern = rf"(?<=\s){re.escape(module)}\b"
            lines[row] = re.sub(pattern, _new_name(module), lines[row], count=1)
    # the header of a rendered file names files of the packages
    lines = [
        _MODULE.sub(lambda match: _in_support(match[0]), line)
        if line.startswith("# ")
        else line
        for line in lines
    ]
    text = "\n".join(lines).replace("(generator/", f"({SUPPORT}/")
    return text.replace("else kernel_judge/", f"else {SUPPORT}/kernel_judge/")


def _in_support(module: str) -> str:
    """Return the name in the support package of a module of ours; others as they are."""
    is_file = _is_ours(module) and _origin(module) is not None
    return _new_name(module) if is_file else module


def _names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module is not None:
        yield node.module
