"""The reference: a plain `run` whose parameters are the inputs, in order.

It returns one value for each output. The source is read, never executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache

from generator.dataset.definition import LoadedDefinition
from generator.dataset.python_source import (
    Unparsable,
    all_nodes,
    imported_modules,
    own_nodes,
    parse_expression,
    parse_module,
    parse_or_none,
)
from generator.problems import Problem, blocking, error, warning
from generator.problems.messages import listing, nearest, plural, quote

REFERENCE_SYNTAX = blocking("""reference-syntax: The reference is not valid Python.
    Fix: Correct the source at that line.
    Finds: `def run(:`""")
REFERENCE_NO_RUN = blocking("""reference-no-run: The reference has no top-level function
    `run`.
    Fix: Define `def run(...)` at the top level, with the inputs as parameters.
    Finds: only `def gemm_reference(a, b):`""")
REFERENCE_RUN_KIND = blocking("""reference-run-kind: The reference's `run` is not a
    plain function.
    Fix: Write it as `def run(...)` that returns its outputs.
    Finds: `run = torch.matmul`""")
REFERENCE_PARAMETERS = blocking("""reference-parameters: The parameters of `run` are not
    the inputs in their order.
    Fix: List the inputs as parameters, in the order of `inputs`.
    Finds: `def run(B, A):` where the inputs are A, B""")
REFERENCE_RETURNS = error("""reference-returns: The reference's `run` does not return
    one value for each output.
    Fix: Return a tensor, or a tuple in the order of `outputs`.
    Finds: `return output` where the outputs are output and lse""")
REFERENCE_IMPORT = warning("""reference-import: The reference imports more than torch,
    numpy, math and typing.
    Fix: Write the computation in plain PyTorch.
    Finds: `import flashinfer`""")

ALLOWED_IMPORTS = frozenset(("__future__", "math", "numpy", "torch", "typing"))
"""The modules that a reference may import."""


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield the Problems of a reference's imports, and of its `run`'s interface."""
    try:
        tree = parse_module(definition.reference)
    except Unparsable as error:
        message = f"The reference is not valid Python: {error.reason}."
        yield REFERENCE_SYNTAX.at(message, "reference", line=error.line)
        return
    for module, line in imported_modules(tree):
        if module.split(".")[0] not in ALLOWED_IMPORTS:
            message = f"The reference imports {quote(module)}."
            yield REFERENCE_IMPORT.at(message, "reference", line=line)
    run = find_run(tree)
    if not isinstance(run, ast.FunctionDef):
        yield _no_plain_run(tree, run)
        return
    if _is_generator(run):
        message = "`run` is a generator, but it must return its outputs."
        yield REFERENCE_RUN_KIND.at(message, "reference", line=run.lineno)
    elif what := _wrong_parameters(definition, run.args):
        yield REFERENCE_PARAMETERS.at(f"`run` {what}.", "reference", line=run.lineno)
    outputs = len(definition.outputs)
    for what, line in _wrong_returns(run, outputs):
        message = f"`run` {what}, but the definition has {plural(outputs, 'output')}."
        yield REFERENCE_RETURNS.at(message, "reference", line=line)


def run_function(definition: LoadedDefinition) -> ast.FunctionDef | None:
    """Return the reference's `run`, or None where there is no plain one."""
    tree = parse_or_none(definition.reference)
    run = find_run(tree) if tree is not None else None
    return run if isinstance(run, ast.FunctionDef) else None


def find_run(tree: ast.Module) -> ast.stmt | None:
    """Return the last top-level statement that binds the name `run`, or None."""
    return next((s for s in reversed(tree.body) if "run" in _bound_names(s)), None)


def _bound_names(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return {statement.name}
        case ast.Assign(targets=targets):
            nodes = [node for target in targets for node in ast.walk(target)]
            # `run.x = 1` reads `run`; only a stored name is bound
            names = [node for node in nodes if isinstance(node, ast.Name)]
            return {name.id for name in names if isinstance(name.ctx, ast.Store)}
        case ast.AnnAssign(target=ast.Name(name)):
            return {name}
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return {alias.asname or alias.name for alias in aliases}
    return set()


def _no_plain_run(tree: ast.Module, statement: ast.stmt | None) -> Problem:
    if statement is not None:
        kind = {
            ast.AsyncFunctionDef: "an async function",
            ast.ClassDef: "a class",
            ast.Import: "imported",
            ast.ImportFrom: "imported",
        }.get(type(statement), "assigned")
        message = f"`run` is {kind}, but it must be a plain function."
        return REFERENCE_RUN_KIND.at(message, "reference", line=statement.lineno)
    message = "The reference has no top-level function `run`."
    functions = {n.name: n for n in all_nodes(tree) if isinstance(n, ast.FunctionDef)}
    if "run" in functions:
        line = functions["run"].lineno
        message += f" The one on line {line} is inside another statement."
        return REFERENCE_NO_RUN.at(message, "reference", line=line)
    dumped = next((n for n in reversed(functions) if n.endswith("_reference")), None)
    guess = dumped or nearest("run", functions)
    if guess is not None:
        message += f" Was {quote(guess)} meant?"
    return REFERENCE_NO_RUN.at(message, "reference")


# many definitions have the same reference
@lru_cache(maxsize=64)
def _is_generator(run: ast.FunctionDef) -> bool:
    return any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in own_nodes(run))


def _wrong_parameters(
    definition: LoadedDefinition, arguments: ast.arguments
) -> str | None:
    """Judge a signature: callers pass the inputs positionally and nothing else."""
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    inputs = list(definition.inputs)
    required = len(positional) - len(arguments.defaults)
    keyword_only = [
        a.arg
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    if positional[: len(inputs)] != inputs:
        return (
            f"takes {listing(_shown(arguments))}, but the inputs are "
            f"{listing(inputs)}: callers pass them positionally"
        )
    if required > len(inputs):
        extra = listing(positional[len(inputs) : required])
        return f"requires {extra} besides the inputs, which nobody passes"
    if keyword_only:
        return f"requires {listing(keyword_only)} by keyword, which nobody passes"
    return None


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


def _wrong_returns(run: ast.FunctionDef, expected: int) -> Iterator[tuple[str, int]]:
    """Yield (what, line) of returns whose number of values is not that of the outputs.

    A call or a bare name may be anything: the annotation of `run` decides there, and
    where it says nothing, nothing is reported.
    """
    statements = [n for n in own_nodes(run) if isinstance(n, ast.Return)]
    branches = [(b, s.lineno) for s in statements for b in _branches(s.value)]
    if not branches:
        yield "returns nothing", run.lineno
    counts = []
    wrong = False
    for value, line in branches:
        count: int | None = None
        match value:
            case None | ast.Constant(None):
                what, count = "returns nothing", -1
            case ast.Dict() | ast.DictComp():
                what, count = "returns a dict", -1
            case ast.Tuple(items) | ast.List(items):
                if not any(isinstance(item, ast.Starred) for item in items):
                    count = len(items)
                    what = f"returns {plural(count, 'value')}"
        counts.append(count)
        if count is not None and count != expected:
            wrong = True
            yield what, line
    declared = _annotated(run.returns)
    if None in counts and not wrong and declared not in (None, expected):
        yield f"is annotated to return {plural(declared, 'value')}", run.lineno


def _branches(value: ast.expr | None) -> Iterator[ast.expr | None]:
    """Yield the expressions that a conditional expression may evaluate to."""
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.IfExp):
            stack += [node.orelse, node.body]
        else:
            yield node


def _annotated(annotation: ast.expr | None) -> int | None:
    """Return the number of values that an annotation promises, or None."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        with suppress(Unparsable):
            annotation = parse_expression(annotation.value)
    match annotation:
        case ast.Subscript(ast.Name(name) | ast.Attribute(_, name), items):
            if name not in ("tuple", "Tuple"):
                return None
            elements = items.elts if isinstance(items, ast.Tuple) else [items]
            is_open = any(
                isinstance(e, ast.Constant) and e.value is ... for e in elements
            )
            return None if is_open else len(elements)
        case ast.Name("Tensor") | ast.Attribute(_, "Tensor"):
            return 1
    return None
