"""Write the file of a definition's custom inputs: data, and the sources of `init`."""

from __future__ import annotations

import ast
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path

from generator.dataset.python_source import parse_module
from generator.dialects.imported import ImportRefused
from generator.dialects.reference_text import functions_of, renamed, with_helpers
from generator.rules.static import undefined_names

_PAGE = '''"""Custom inputs of {name}: how to make them, and which kernel takes them.

From the template {template} of {origin}, whose sources these are. pytest calls
`init`; nothing else executes this file.
"""

# the arguments of `init`
CALL = {call!r}
# the sizes of the variable axes that `init` makes with them
CASE = {case!r}
# input: argument of the kernel, place in it where that is a tuple
ARGUMENTS = {arguments!r}
# output: place in what the kernel returns, argument that it is written to
OUTPUTS = {outputs!r}
# the functions that compute it
APIS = {apis!r}

{init}
'''


def custom_text(
    name: str,
    origin: str,
    template: str,
    *,
    call: Mapping[str, int],
    case: Mapping[str, int],
    arguments: Mapping[str, tuple[str, int | None]],
    outputs: Mapping[str, tuple[int, str | None]],
    apis: Sequence[str],
    init: str,
    module: Path | None,
    check: str,
) -> str:
    """Return the text of the file; `init` and `check` are sources of functions."""
    future = "from __future__ import annotations\n"
    body = _needed(with_helpers(init.replace(future, ""), module)) if init else ""
    if check and init:
        body += "\n\n\n# ----- check -----\n" + check.strip("\n")
    return _PAGE.format(
        name=name,
        origin=origin,
        template=template,
        call=dict(call),
        case=dict(case),
        arguments=dict(arguments),
        outputs=dict(outputs),
        apis=list(apis),
        init=body,
    )


def _needed(source: str) -> str:
    """Return the last function of a source as `init`, with what it reads; no more."""
    functions = functions_of(source, "init")
    lines = source.splitlines()
    waiting = [functions[-1].name]
    read: set[str] = set()
    by_name = {n.name: n for n in functions}
    while waiting:
        name = waiting.pop()
        if name in read:
            continue
        read.add(name)
        if name in by_name:
            nodes = ast.walk(by_name[name])
            waiting += [n.id for n in nodes if isinstance(n, ast.Name)]
    parts = []
    for node in parse_module(source).body:
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_list = isinstance(node, ast.Assign) and "__all__" in ast.dump(
            node.targets[0]
        )
        unread = isinstance(node, ast.FunctionDef) and node.name not in read
        if not (is_text or is_list or unread):
            first = min([node.lineno, *(d.lineno for d in decorators(node))])
            parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    text = renamed("\n\n".join(parts) + "\n", functions[-1].name, "init").strip("\n")
    missing = undefined_names(text)
    if missing and not set(missing) <= set(typing.__all__):
        raise ImportRefused(
            f"its init reads {', '.join(missing)}, which nothing defines"
        )
    # the module that it is from postpones annotations, whose names it need not import
    return f"from typing import {', '.join(missing)}\n\n{text}" if missing else text


def decorators(node: ast.stmt) -> list[ast.expr]:
    """Return the decorators of a function or a class, which stand above its line."""
    return getattr(node, "decorator_list", [])
