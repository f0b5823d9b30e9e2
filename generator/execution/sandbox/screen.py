"""A static screen of a reference: what no reference needs, with the line shown.

It reads the syntax tree and executes nothing. It is a sieve, not a proof: what passes
may still be hostile, and runs confined. What does not pass is not run without `--trust`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from generator.dataset.python_source import Unparsable, parse_module
from generator.execution.sandbox.captured import inert
from generator.execution.sandbox.denied_names import (
    ATTRIBUTES,
    MODULES,
    NAMES,
    PREFIXES,
    SPECIAL_METHODS,
)

_SHOWN = 160
_LONGEST = 1_000_000
_MOST = 100
_LONG_NAME = 60
_JUDGES = ("Tensor", "Parameter", "TorchFunctionMode", "TorchDispatchMode")


@dataclass(frozen=True, order=True)
class Finding:
    """One thing that no reference needs: where, the line, what it is and why not."""

    line: int
    text: str
    what: str
    why: str


def screen(source: str) -> tuple[Finding, ...]:
    """Return what is suspicious in a reference, in order of lines; never raises."""
    if len(source) > _LONGEST:
        return (Finding(1, "", "its size", f"it has over {_LONGEST:,} characters"),)
    lines = source.splitlines()
    try:
        tree = parse_module(source)
    except Unparsable as error:
        number = error.line or 1
        what = f"source that does not parse: {inert(error.reason)}"
        return (Finding(number, _text(lines, number), what, "it cannot be judged"),)
    found = set()
    parameters = set(_parameters(tree))
    for node in ast.walk(tree):
        if node in parameters:
            continue
        for what, why in _judge(node):
            number = getattr(node, "lineno", 1)
            found.add(Finding(number, _text(lines, number), inert(what), why))
    found |= set(_patches(tree, lines))
    return tuple(sorted(found)[:_MOST])


def _parameters(tree: ast.Module) -> Iterator[ast.Name]:
    """Yield the names that are a function's parameters, whatever builtin has the name.

    FlashInfer calls an activation's tensor `input`. A default or an annotation is read
    outside of its function, and `global` inside of one reaches the builtin after all.
    """
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        inside = [node for part in function.body for node in ast.walk(part)]
        own = function.args
        given = {a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs)}
        reached = {n for s in inside if isinstance(s, ast.Global) for n in s.names}
        for node in inside:
            if isinstance(node, ast.Name) and node.id in NAMES.keys() & given - reached:
                yield node


def _text(lines: list[str], number: int) -> str:
    if not 1 <= number <= len(lines):
        return ""
    text = inert(lines[number - 1].strip())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _judge(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield what a node is that no reference needs, each with the reason."""
    names: list[str] = []
    match node:
        case ast.Import():
            for alias in node.names:
                yield from _import(alias.name)
                names += alias.name.split(".")[1:]
        case ast.ImportFrom():
            yield from _import("." * node.level + (node.module or ""))
            names = (node.module or "").split(".")[1:]
            for alias in node.names:
                names.append(alias.name)
                if alias.name == "*":
                    yield "import *", "it may replace any name unseen"
        case ast.Attribute():
            names = [node.attr]
        case ast.MatchClass():
            names = node.kwd_attrs
        case ast.Name():
            if node.id in NAMES:
                yield node.id, NAMES[node.id]
            elif _dunder(node.id):
                yield node.id, "it reaches into the interpreter"
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if _dunder(node.name) and node.name not in SPECIAL_METHODS:
                yield node.name, "such a method can answer for a comparison"
        case ast.ClassDef():
            for base in node.bases:
                name = getattr(base, "attr", getattr(base, "id", ""))
                if name in _JUDGES:
                    yield f"a subclass of {name}", "it can answer for a comparison"
            if any(keyword.arg == "metaclass" for keyword in node.keywords):
                yield "a metaclass", "no reference needs one"
        case ast.Call(func=ast.Name(id="getattr")):
            match node.args[1:2]:
                case [ast.Constant(value=str(name))]:
                    names = [name]
                case _:
                    why = "by a name that is not written out, it reaches anything"
                    yield "getattr", why
        case ast.Call(func=ast.Name(id="type")):
            if len(node.args) != 1:
                yield "type", "it makes a class that cannot be read here"
        case ast.Constant(value=str(text)):
            # `str.format` takes it for a path of attributes
            if "{" in text and ".__" in text:
                yield "a format with .__", "it reads attributes of the interpreter"
    for name in names:
        if name in ATTRIBUTES:
            yield f".{name}", ATTRIBUTES[name]
        elif name.startswith("_"):
            yield f".{name}", "it reaches into what is private"
        else:
            for prefix, why in PREFIXES.items():
                if name.startswith(prefix):
                    yield f".{name}", why


def _import(module: str) -> Iterator[tuple[str, str]]:
    allowed = MODULES.split()
    if module.split(".")[0] not in allowed:
        yield f"import of {module}", f"a reference needs {', '.join(allowed[:4])} only"


def _patches(tree: ast.Module, lines: list[str]) -> Iterator[Finding]:
    """Yield assignments to what belongs to an imported module."""
    imported = {
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            continue
        if isinstance(node.ctx, ast.Load):
            continue
        root: ast.expr = node
        name = ""
        while isinstance(root, (ast.Attribute, ast.Subscript)):
            part = f".{root.attr}" if isinstance(root, ast.Attribute) else "[...]"
            name = part + name if len(name) < _LONG_NAME else name
            root = root.value
        if isinstance(root, ast.Name) and root.id in imported:
            what = f"an assignment to {inert(root.id + name)}"
            why = "it changes a module for the tests as well"
            yield Finding(node.lineno, _text(lines, node.lineno), what, why)


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and len(name) > 4
