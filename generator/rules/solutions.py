"""Solutions: paths, sources and entry points; the sources are not executed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.python_source import (
    Unparsable,
    all_nodes,
    imported_modules,
    parse_module,
)
from generator.problems import Problem, error, warning
from generator.problems.messages import did_you_mean, listing, quote
from generator.rules.reference import run_function

SOLUTION_PATH = error("""solution-path: A solution's author, definition or name is not
    what its path says.
    Fix: Make the two the same: solutions/<author>/<op_type>/<definition>/<name>.json.
    Finds: `"author": "alice"` in solutions/bob/""")
SOLUTION_DUPLICATE = error("""solution-duplicate: Two solutions of a definition have the
    same name.
    Fix: Rename one of them.
    Finds: baseline/.../fast.json and alice/.../fast.json""")
SOLUTION_SOURCE_PATH = error("""solution-source-path: A source file's path leads out of
    the solution, or two files have the same.
    Fix: Use distinct relative paths with forward slashes.
    Finds: `"path": "../../run.py"`""")
SOLUTION_SYNTAX = error("""solution-syntax: A Python source of a solution does not
    parse.
    Fix: Correct the source at that line.
    Finds: `def run(:` in main.py""")
SOLUTION_ENTRY_POINT = error("""solution-entry-point: The entry point names a file or a
    function that the sources do not have.
    Fix: Write entry_point as file::function, of one of the sources.
    Finds: `"entry_point": "main.py::run"` where main.py defines only kernel""")
SOLUTION_PARAMETERS = error("""solution-parameters: The entry point can't be called with
    the definition's inputs.
    Fix: Take the inputs in order, then the outputs if destination_passing_style.
    Finds: `def run(A):` where the inputs are A, B""")
BASELINE_REPEATS_REFERENCE = error("""baseline-repeats-reference: A baseline solution is
    the reference again, so it measures nothing.
    Fix: Call the production kernel.
    Finds: solutions/baseline/... with the text of `reference`""")
BASELINE_NO_KERNEL = warning("""baseline-no-kernel: A baseline solution calls neither
    FlashInfer nor SGLang nor a kernel of its own.
    Fix: Call the production kernel that the fi_api: tag names.
    Finds: a baseline in Python that imports only torch""")

_KERNELS = frozenset(("cuda", "cpp", "triton", "tilelang"))
_PRODUCTION = ("flashinfer", "sglang", "sgl_kernel", "triton", "tilelang", "deep_gemm")
_WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:")
_ENTRY = ("spec", "entry_point")


def check_solution(
    value: Mapping[str, Any],
    file: str,
    definition: LoadedDefinition | None,
    names: dict[str, str],
) -> Iterator[Problem]:
    """Yield the Problems of a solution that fits the schema.

    `names` maps the names of solutions seen before to their files.
    """
    _, author, _, of, name = file.removesuffix(".json").split("/", 4)
    for field, stated in (("author", author), ("definition", of), ("name", name)):
        if value[field] != stated:
            message = f"The {field} is {quote(value[field])}, the path says "
            yield SOLUTION_PATH.at(f"{message}{quote(stated)}.", field)
    first = names.setdefault(value["name"], file)
    if first != file:
        message = (
            f"The name {quote(value['name'])} is also that of {quote(first, 200)}."
        )
        yield SOLUTION_DUPLICATE.at(message, "name")
    trees: dict[str, ast.Module | None] = {}
    yield from _check_sources(value, trees)
    yield from _check_entry_point(value, definition, trees)
    if value["author"] == "baseline" and definition is not None:
        yield from _check_baseline(value, definition, trees)


def _check_sources(
    value: Mapping[str, Any], trees: dict[str, ast.Module | None]
) -> Iterator[Problem]:
    """Yield Problems; put the tree of each Python source into `trees`."""
    for index, source in enumerate(value["sources"]):
        path = source["path"]
        what = bad_source_path(path)
        if what is None and path in trees:
            what = "is that of another source as well"
        if what is not None:
            message = f"The path {quote(path, 200)} {what}."
            yield SOLUTION_SOURCE_PATH.at(message, "sources", index, "path")
        trees[path] = None
        if path.endswith(".py"):
            try:
                trees[path] = parse_module(source["content"])
            except Unparsable as error:
                message = (
                    f"The source {quote(path, 200)} is not Python: {error.reason}."
                )
                where = ("sources", index, "content")
                yield SOLUTION_SYNTAX.at(message, *where, line=error.line)


def bad_source_path(path: str) -> str | None:
    """Return why a source can't have a path, None where it can."""
    if path.startswith("/") or "\\" in path or _WINDOWS_DRIVE.match(path):
        return "is not a relative path with forward slashes"
    if any(part in ("", ".", "..") for part in path.split("/")):
        return "leads upwards or says nothing at one step"
    if not path.isprintable():
        return "has characters that can't be printed"
    return None


def _check_entry_point(
    value: Mapping[str, Any],
    definition: LoadedDefinition | None,
    trees: Mapping[str, ast.Module | None],
) -> Iterator[Problem]:
    path, _, function = value["spec"]["entry_point"].rpartition("::")
    tree = trees.get(path)
    what = None
    if path not in trees:
        message = f"There is no source {quote(path)}.{did_you_mean(path, trees)}"
        yield SOLUTION_ENTRY_POINT.at(message, *_ENTRY)
    elif tree is not None:
        defined = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        if function not in defined and function not in _bound(tree):
            what = f"defines no {quote(function)}.{did_you_mean(function, defined)}"
        elif function in defined and definition is not None:
            yield from _check_parameters(value, definition, defined[function])
    elif not path.endswith(".py"):
        source = next(s["content"] for s in value["sources"] if s["path"] == path)
        if not re.search(rf"\b{function}\b", source):
            what = f"does not mention {quote(function)}."
    if what is not None:
        yield SOLUTION_ENTRY_POINT.at(f"The source {quote(path)} {what}", *_ENTRY)


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in all_nodes(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)


def _check_parameters(
    value: Mapping[str, Any], definition: LoadedDefinition, function: ast.FunctionDef
) -> Iterator[Problem]:
    """Judge how many arguments the entry point takes: callers pass them in order."""
    passed = [*definition.inputs]
    if value["spec"].get("destination_passing_style", True):
        passed += definition.outputs
    arguments = function.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    fewest = len(names) - len(arguments.defaults)
    most = len(passed) if arguments.vararg else len(names)
    if not fewest <= len(passed) <= most:
        message = f"{quote(function.name)} takes {listing(names)}, but is called with "
        message += f"{listing(passed)}."
        yield SOLUTION_PARAMETERS.at(message, *_ENTRY, line=function.lineno)


def _check_baseline(
    value: Mapping[str, Any],
    definition: LoadedDefinition,
    trees: Mapping[str, ast.Module | None],
) -> Iterator[Problem]:
    python = {path: tree for path, tree in trees.items() if tree is not None}
    body = _body(run_function(definition))
    for path, tree in python.items():
        functions = [n for n in all_nodes(tree) if isinstance(n, ast.FunctionDef)]
        if body and any(_body(function) == body for function in functions):
            index = next(i for i, s in enumerate(value["sources"]) if s["path"] == path)
            message = f"The source {quote(path, 200)} has the code of the reference."
            yield BASELINE_REPEATS_REFERENCE.at(message, "sources", index, "content")
            return
    if value["spec"]["language"] in _KERNELS or len(python) < len(trees):
        return
    modules = [m for tree in python.values() for m, _ in imported_modules(tree)]
    calls_ops = any("torch.ops" in source["content"] for source in value["sources"])
    if not calls_ops and {m.split(".")[0] for m in modules}.isdisjoint(_PRODUCTION):
        message = "No source imports a library of kernels."
        yield BASELINE_NO_KERNEL.at(message, "sources")


def _body(function: ast.FunctionDef | None) -> list[str]:
    """Return a function's statements as text, without positions and docstring."""
    if function is None:
        return []
    try:
        statements = [ast.dump(s) for s in function.body]
    except RecursionError:
        return []
    return statements[1:] if ast.get_docstring(function) else statements
