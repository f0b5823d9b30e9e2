"""The parsed source of an op_type's `op.py`; the module is never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from generator.ops.registry import BadOpType, op_folder
from generator.problems.messages import did_you_mean, quote
from kernel_judge.comparison.tolerance import Override
from kernel_judge.provider import providers, serving

_OP = "OP = Op(…)"
OP_FIELDS = (
    "cases",
    "make_inputs",
    "oracle",
    "defined_rows",
    "filled_inputs",
    "peak_bytes",
    "relations",
    "tolerances",
    "policies",
    "kernels",
    "only_moves",
)
"""The fields that an op_type may declare in `OP = Op(…)`; REQUIRED ones it must."""
REQUIRED = OP_FIELDS[:3]

SHARED = ("oracle", "tolerances", "policies", "relations")
"""The fields of which a rendered file names the modules that they import from."""
_GONE = {
    "generator.testing": "kernel_judge, or generator.running for what pytest runs",
}
"""Packages of earlier versions, and from where to import now."""


@dataclass(frozen=True)
class OpSource:
    """The parts of an `op.py`: imports, the text after them, and what `OP` declares.

    `fields` are the keywords of `OP = Op(…)`, `providers` the keys of its `kernels`,
    then the providers that bring kernels for the op_type. `on_cpu` lists those of
    which a backend runs without CUDA, and counts there. `modules` names those that a field of SHARED, and what it calls in the file, import from.
    """

    imports: tuple[ast.stmt, ...]
    body: str
    fields: tuple[str, ...]
    providers: tuple[str, ...]
    on_cpu: tuple[str, ...] = ()
    modules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policies: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@cache
def op_source(op_type: str) -> OpSource:
    """Read the module of a registered op_type; it is parsed, never imported.

    Raises BadOpType where it is not Python, does not begin with imports, imports a
    package of an earlier version, or has no `OP = Op(…)`.
    """
    tree, text = _parsed(op_type)
    is_import = [isinstance(node, (ast.Import, ast.ImportFrom)) for node in tree.body]
    if not any(is_import):
        message = f"imports nothing: begin with imports, and end in `{_OP}`."
        raise _bad(op_type, message)
    last = max(i for i, one in enumerate(is_import) if one)
    imports = tuple(n for n, one in zip(tree.body, is_import, strict=True) if one)
    fields = _fields(op_type, tree)
    kernels = _kernels(op_type, fields)
    known = providers()
    on_cpu = [
        name
        for name, call in kernels.items()
        if name in known and known[name].on_cpu and _runs_on_cpu(tree, call)
    ]
    others = [p for p in serving(op_type) if p.name not in kernels]
    lines = text.splitlines(keepends=True)
    return OpSource(
        imports,
        # from the end of the imports on, so that a comment above the first name is kept
        "".join(lines[tree.body[last].end_lineno or 0 :]).strip("\n"),
        tuple(name for name in OP_FIELDS if name in fields),
        (*kernels, *(p.name for p in others)),
        (*on_cpu, *(p.name for p in others if p.on_cpu)),
        {
            name: _modules(tree, value)
            for name, value in fields.items()
            if name in SHARED
        },
        _policies(tree, fields.get("policies")),
    )


@cache
def op_tolerances(op_type: str) -> tuple[Override, ...]:
    """Return the overrides that a registered op_type declares, without importing torch.

    Of its module only the statements that `tolerances` needs are executed. Raises
    BadOpType where these raise.
    """
    tree, _ = _parsed(op_type)
    value = _fields(op_type, tree).get("tolerances")
    if value is None:
        return ()
    place = str(op_folder(op_type) / "op.py")
    names: dict[str, object] = {"__name__": f"bounds of {op_type}"}
    statements = [s for s in _needed(tree, value) if not _is_future(s)]
    try:
        exec(compile(ast.Module(statements, []), place, "exec"), names)  # noqa: S102
        overrides = eval(compile(ast.Expression(value), place, "eval"), names)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise _bad(op_type, f"tolerances of OP: {what}") from error
    if not isinstance(overrides, tuple) or not all(
        isinstance(override, Override) for override in overrides
    ):
        message = (
            "tolerances of OP: write a tuple of Override(output, tolerance, reason)."
        )
        raise _bad(op_type, message)
    return overrides


@cache
def _parsed(op_type: str) -> tuple[ast.Module, str]:
    file = op_folder(op_type) / "op.py"
    try:
        text = file.read_text("utf-8")
        tree = ast.parse(text, str(file))
    except (SyntaxError, ValueError) as error:
        raise _bad(op_type, f"{type(error).__name__}: {error}") from error
    for package, instead in _GONE.items():
        modules = (getattr(n, "module", "") or "" for n in ast.walk(tree))
        # to walk a module takes as long as to parse it, and few name the package
        gone = (m for m in modules if f"{m}.".startswith(f"{package}."))
        if package in text and (module := next(gone, None)) is not None:
            raise _bad(op_type, f"{module} is gone: import from {instead}.")
    return tree, text


def _bad(op_type: str, message: str) -> BadOpType:
    return BadOpType(
        f"The op_type {op_type!r}: {op_folder(op_type) / 'op.py'}: {message}"
    )


def _fields(op_type: str, tree: ast.Module) -> dict[str, ast.expr]:
    """Return the keywords of `OP = Op(…)` with their expressions."""
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and [getattr(target, "id", "") for target in node.targets] == ["OP"]
            and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", "") == "Op"
        ):
            return _declared(op_type, node.value)
    message = f"has no `{_OP}`, the value that declares cases, inputs and kernels."
    raise _bad(op_type, message)


def _declared(op_type: str, call: ast.Call) -> dict[str, ast.expr]:
    """Return the keywords of the call. Raises BadOpType where tests could not run it."""
    if call.args or any(k.arg is None for k in call.keywords):
        raise _bad(op_type, f"{_OP}: name each field, as in Op(cases=cases, …).")
    fields = {k.arg: k.value for k in call.keywords if k.arg is not None}
    for name in fields:
        if name not in OP_FIELDS:
            known = did_you_mean(name, OP_FIELDS) or f" It has {', '.join(OP_FIELDS)}."
            raise _bad(op_type, f"{_OP} has no field {quote(name)}.{known}")
    lacking = [name for name in REQUIRED if name not in fields]
    if lacking:
        raise _bad(op_type, f"{_OP} needs the field {' and '.join(lacking)} as well.")
    return fields


def _kernels(op_type: str, fields: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """Return provider → the expression of its Kernel."""
    value = fields.get("kernels")
    if value is None:
        return {}
    keys = [getattr(key, "value", None) for key in getattr(value, "keys", [None])]
    if not isinstance(value, ast.Dict) or not all(isinstance(k, str) for k in keys):
        message = 'kernels of OP: write {"<provider>": Kernel(backends, call)} in full.'
        raise _bad(op_type, message)
    return dict(zip(map(str, keys), value.values, strict=True))


def _runs_on_cpu(tree: ast.Module, kernel: ast.expr) -> bool:
    """Return whether a kernel's backends pass `needs_cuda=False`."""
    first = next(iter(getattr(kernel, "args", ())), None)
    name = getattr(first, "id", "")
    functions = (n for n in tree.body if isinstance(n, ast.FunctionDef))
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "needs_cuda"
        and isinstance(node.value, ast.Constant)
        and node.value.value is False
        for function in functions
        if function.name == name
        for node in ast.walk(function)
    )


def _needed(tree: ast.Module, value: ast.expr) -> list[ast.stmt]:
    """Return the module's statements that an expression needs, in their order."""
    places = _places(tree)
    seen: set[str] = set()
    waiting = list(_names(value))
    while waiting:
        name = waiting.pop()
        if name not in seen and name in places:
            seen.add(name)
            waiting += _names(places[name])
    needed = {id(places[name]) for name in seen}
    return [statement for statement in tree.body if id(statement) in needed]


@cache
def _places(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return name → the statement of a module that defines it."""
    return {name: statement for statement in tree.body for name in _defined(statement)}


@cache
def _names(node: ast.AST) -> tuple[str, ...]:
    return tuple(n.id for n in ast.walk(node) if isinstance(n, ast.Name))


def _defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield from ((a.asname or a.name).split(".")[0] for a in statement.names)
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        targets = getattr(statement, "targets", None) or [statement.target]  # type: ignore[union-attr]
        yield from (name for target in targets for name in _names(target))


def _is_future(statement: ast.stmt) -> bool:
    return getattr(statement, "module", "") == "__future__"


def _modules(tree: ast.Module, value: ast.expr) -> tuple[str, ...]:
    """Return the modules that an expression and what it needs import from."""
    needed = (s for s in _needed(tree, value) if isinstance(s, ast.ImportFrom))
    return tuple(sorted({str(statement.module) for statement in needed}))


def _policies(tree: ast.Module, value: ast.expr | None) -> dict[str, tuple[str, str]]:
    """Return output → the class of its policy, and the module of that."""
    if value is None:
        return {}
    assigned = _places(tree)
    if isinstance(value, ast.Name):
        value = getattr(assigned.get(value.id), "value", value)
    places = {}
    for key, policy in zip(
        getattr(value, "keys", ()), getattr(value, "values", ()), strict=True
    ):
        name = getattr(getattr(policy, "func", None), "id", "")
        module = getattr(assigned.get(name), "module", None)
        places[str(getattr(key, "value", ""))] = (name, module or "this file")
    return places
