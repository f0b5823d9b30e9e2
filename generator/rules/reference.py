"""The reference: a plain function `run` whose parameters are the inputs in order."""

from __future__ import annotations

import ast
from functools import lru_cache

from generator.dataset.definition import Definition
from generator.dataset.python_source import (
    Unparsable,
    all_nodes,
    imported_modules,
    own_nodes,
    parse_module,
)
from generator.problems import Problem
from generator.problems.messages import listing, nearest, quote
from generator.problems.rule import Rule, blocking, warning

REFERENCE_SYNTAX = blocking(
    "reference-syntax",
    "The reference is not valid Python.",
    "Correct the source at that line.",
    "`def run(:`",
)
REFERENCE_NO_RUN = blocking(
    "reference-no-run",
    "The reference has no top-level function `run`.",
    "Define `def run(...)` at the top level, with the inputs as parameters.",
    "only `def gemm_reference(a, b):`",
)
REFERENCE_RUN_KIND = blocking(
    "reference-run-kind",
    "The reference's `run` is not a plain function.",
    "Write it as `def run(...)` that returns its outputs.",
    "`run = torch.matmul`",
)
REFERENCE_PARAMETERS = blocking(
    "reference-parameters",
    "The parameters of `run` are not the inputs in their order.",
    "List the inputs as parameters, in the order of `inputs`.",
    "`def run(B, A):` where the inputs are A, B",
)
REFERENCE_IMPORT = warning(
    "reference-import",
    "The reference imports more than torch, numpy, math and typing.",
    "Write the computation in plain PyTorch.",
    "`import flashinfer`",
)


ALLOWED_IMPORTS = frozenset(("__future__", "math", "numpy", "torch", "typing"))
"""The modules that a reference may import."""


def check(definition: Definition) -> list[Problem]:
    """Return Problems of the reference up to the parameters of `run`, and imports.

    What `run` returns is in `returns`. The source is read, never executed.
    """
    try:
        tree = parse_module(definition.reference)
    except Unparsable as error:
        message = f"The reference is not valid Python: {error.reason}."
        return [_problem(REFERENCE_SYNTAX, definition, message, error.line)]
    problems = _imports(definition, tree)
    run = find_run(tree)
    if isinstance(run, ast.FunctionDef):
        return problems + _parameters(definition, run)
    return [*problems, _no_plain_run(definition, tree, run)]


def run_function(definition: Definition) -> ast.FunctionDef | None:
    """Return the reference's `run`, or None where there is no plain one."""
    try:
        run = find_run(parse_module(definition.reference))
    except Unparsable:
        return None
    return run if isinstance(run, ast.FunctionDef) else None


def find_run(tree: ast.Module) -> ast.stmt | None:
    """Return the last top-level statement that binds the name `run`, or None."""
    return next((s for s in reversed(tree.body) if "run" in _bound_names(s)), None)


def _bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.Assign):
        nodes = [node for target in statement.targets for node in ast.walk(target)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        # `run.x = 1` reads `run`; only a stored name is bound.
        return {name.id for name in names if isinstance(name.ctx, ast.Store)}
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return {statement.target.id}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in statement.names}
    return set()


def _no_plain_run(
    definition: Definition, tree: ast.Module, found: ast.stmt | None
) -> Problem:
    if found is not None:
        kind = {
            ast.AsyncFunctionDef: "an async function",
            ast.ClassDef: "a class",
            ast.Import: "imported",
            ast.ImportFrom: "imported",
        }.get(type(found), "assigned")
        message = f"`run` is {kind}, but it must be a plain function."
        return _problem(REFERENCE_RUN_KIND, definition, message, found.lineno)
    message = "The reference has no top-level function `run`."
    functions = [n for n in all_nodes(tree) if isinstance(n, ast.FunctionDef)]
    inner = next((f for f in functions if f.name == "run"), None)
    if inner is not None:
        message += f" The one on line {inner.lineno} is inside another statement."
        return _problem(REFERENCE_NO_RUN, definition, message, inner.lineno)
    names = [f.name for f in functions]
    dumped = next((n for n in reversed(names) if n.endswith("_reference")), None)
    guess = dumped or nearest("run", names)
    if guess is not None:
        message += f" Was {quote(guess)} meant?"
    return _problem(REFERENCE_NO_RUN, definition, message, None)


def _parameters(definition: Definition, run: ast.FunctionDef) -> list[Problem]:
    """Judge the signature: callers pass the inputs positionally and nothing else."""
    if _is_generator(run):
        message = "`run` is a generator, but it must return its outputs."
        return [_problem(REFERENCE_RUN_KIND, definition, message, run.lineno)]
    arguments = run.args
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    inputs = list(definition.inputs)
    required = len(positional) - len(arguments.defaults)
    keyword_only = [
        a.arg
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if positional[: len(inputs)] != inputs:
        what = f"`run` takes {listing(_shown(arguments))}, but the inputs are "
        what += f"{listing(inputs)}: callers pass them positionally."
    elif required > len(inputs):
        extra = listing(positional[len(inputs) : required])
        what = f"`run` requires {extra} besides the inputs, which nobody passes."
    elif keyword_only:
        what = (
            f"`run` requires {listing(keyword_only)} by keyword, which nobody passes."
        )
    else:
        return []
    return [_problem(REFERENCE_PARAMETERS, definition, what, run.lineno)]


# Many definitions have the same reference.
@lru_cache(maxsize=64)
def _is_generator(run: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(run))


def _shown(arguments: ast.arguments) -> list[str]:
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    if arguments.vararg is not None:
        names.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        names.append("*")
    names += [a.arg for a in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        names.append(f"**{arguments.kwarg.arg}")
    return names


def _imports(definition: Definition, tree: ast.Module) -> list[Problem]:
    return [
        _problem(
            REFERENCE_IMPORT,
            definition,
            f"The reference imports {quote(module)}.",
            line,
        )
        for module, line in imported_modules(tree)
        if module.split(".")[0] not in ALLOWED_IMPORTS
    ]


def _problem(
    rule: Rule, definition: Definition, message: str, line: int | None
) -> Problem:
    return rule.problem(definition.path, message, pointer="/reference", line=line)
