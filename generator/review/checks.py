"""Checks read out of the text of tests, and those that a change loosens.

The text is parsed and nothing of it runs. What decides a test's outcome and can be read
without running it is a Fact: each tolerance, case, policy, relation, skip, constant, base
class and test, and for the rest of the code the syntax tree of each function.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from generator.problems.messages import one_line
from generator.review.rendered_classes import as_collected

WIDER, NARROWER, GONE, NEW, OTHER = "wider", "narrower", "gone", "new", "other"
_FIELDS = ("rtol", "atol", "nmse", "hit_ratio", "cosine", "norm_ratio")
_SHOWN = 160
_SKIPS = ("skip", "xfail", "obstacle", "notimplemented")
_TESTED = ("test", "check", "compare", "equal")

_THERE = "there"
_NO_CHECKS = ("import", "function", "code", "constant")
"""What loosens nothing where it is new."""

Facts = dict[tuple[str, str], str]
"""Kind and name of what is checked → how, as source text."""


@dataclass(frozen=True)
class CheckChange:
    """One thing that tests check otherwise than before.

    `effect` is wider, narrower, gone, new or other; `before` or `after` is empty where
    there is no such thing on that side.
    """

    file: str
    kind: str
    name: str
    before: str
    after: str
    effect: str

    @property
    def is_weaker(self) -> bool:
        """Return whether less may be checked: what cannot be told counts as less."""
        if self.effect == NEW:
            return self.kind == "skip"
        if self.effect == GONE:
            return self.kind != "skip"
        return self.effect in (WIDER, OTHER)


def changes_of(file: str, old: str, new: str) -> Iterator[CheckChange]:
    """Yield what two texts of a module check differently.

    A text that is no Python checks nothing.
    """
    if file.endswith(".json"):
        before, after = figures_of(old), figures_of(new)
    else:
        before, after = map(_facts, _without_what_is_equal(old, new))
    for key in dict.fromkeys([*before, *after]):
        was, now = before.get(key), after.get(key)
        if was == now:
            continue
        effect = GONE if now is None else NEW if was is None else OTHER
        if effect == NEW and key[0] in _NO_CHECKS:
            continue
        if was is not None and now is not None and key[0] == "tolerance":
            effect = _tolerance_effect(was, now)
        texts = (was or "", now or "")
        if key[0] == "code":
            texts = _first_difference(*texts)
        was, now = (one_line(text, _SHOWN) for text in texts)
        yield CheckChange(file, key[0], one_line(key[1], _SHOWN), was, now, effect)


def _first_difference(old: str, new: str) -> tuple[str, str]:
    """Return the first lines that differ, without what they have around them."""
    pairs = zip_longest(old.splitlines(), new.splitlines(), fillvalue="")
    was, now = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return was.strip(), now.strip()


def _without_what_is_equal(
    old: str, new: str
) -> tuple[Sequence[ast.stmt], Sequence[ast.stmt]]:
    """Return the statements of two modules, without those that both have.

    Where a side binds a name twice, the order of its statements matters: all are returned
    then.
    """
    was, now = _statements(old), _statements(new)
    before, after = _texts(was, _lines(old)), _texts(now, _lines(new))
    if before is None or after is None:
        return was, now
    return as_collected(
        was,
        now,
        [node for text, node in before.items() if text not in after],
        [node for text, node in after.items() if text not in before],
    )


def _statements(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _lines(text: str) -> list[str]:
    """Return the lines as the parser counts them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _texts(body: list[ast.stmt], lines: list[str]) -> dict[str, ast.stmt] | None:
    """Return text → statement of a module; None where it binds a name twice.

    A statement that begins a line of its own is what its lines are, whatever comes
    before; where one does not, None is returned as well.
    """
    statements: dict[str, ast.stmt] = {}
    names: Counter[str] = Counter()
    end = 0
    for node in body:
        first = min([node.lineno, *(d.lineno for d in _decorators(node))])
        if node.col_offset or first <= end:
            return None
        names.update(_bound(node))
        end = node.end_lineno or first
        statements["\n".join(lines[first - 1 : end])] = node
    return None if any(count > 1 for count in names.values()) else statements


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


def _bound(node: ast.stmt) -> list[str]:
    """Return the names that a definition, an assignment or an import binds."""
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Assign(targets=[ast.Name(id=name)]):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name for alias in names]
    return []


def _facts(body: Sequence[ast.stmt]) -> Facts:
    """Return the facts of statements."""
    facts: Facts = {}
    seen: Counter[tuple[str, str]] = Counter()

    def add(kind: str, name: str, value: str) -> None:
        seen[kind, name] += 1
        again = seen[kind, name]
        facts[kind, name if again == 1 else f"{name} ({again})"] = value

    for kind, name, value in _walk(body, ""):
        add(kind, name, value)
    return facts


def figures_of(text: str) -> Facts:
    """Return the figures of a JSON table, `model.figure` → value."""
    try:
        table = json.loads(text)
        table = table if isinstance(table, dict) else {}
    except (ValueError, RecursionError):
        return {}
    return {
        ("figure", f"{name}.{figure}"): json.dumps(value, sort_keys=True)
        for name, figures in table.items()
        if isinstance(figures, dict)
        for figure, value in figures.items()
    }


def _walk(body: Sequence[ast.stmt], inside: str) -> Iterator[tuple[str, str, str]]:
    for node in body:
        match node:
            case ast.ClassDef():
                where = f"{inside}{node.name}"
                for base in node.bases:
                    yield "tests of", f"{where}: {ast.unparse(base)}", _THERE
                for decorator in node.decorator_list:
                    yield "skip", f"{where}: {ast.unparse(decorator)}", _THERE
                yield from _walk(node.body, f"{where}.")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _function(node, inside)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield from _assigned(f"{inside}{name}", value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield from _assigned(f"{inside}{name}", value)
            case ast.Import() | ast.ImportFrom():
                module = getattr(node, "module", None) or ""
                for alias in node.names:
                    name = alias.asname or alias.name
                    yield "import", f"{inside}{name}", f"{module}.{alias.name}"
            case ast.Expr(value=ast.Constant(value=str())):
                pass
            case _:
                yield "code", f"{inside}statement", ast.unparse(node)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, inside: str
) -> Iterator[tuple[str, str, str]]:
    name = f"{inside}{node.name}"
    facts = list(_calls(node, f"{name}: "))
    yield from facts
    kind = "test" if node.name.startswith(_TESTED) else "function"
    yield kind, name, _THERE
    # what is a fact of its own is not told twice
    yield "code", name, ast.unparse(_without(node))


def _assigned(name: str, value: ast.expr) -> Iterator[tuple[str, str, str]]:
    facts = list(_calls(value, ""))
    if not facts and isinstance(value, ast.Dict):
        for key, item in zip(value.keys, value.values, strict=True):
            shown = "**" if key is None else ast.unparse(key)
            kind = "policy" if "POLIC" in name else _kind(item)
            yield kind, f"{name}[{shown}]", ast.unparse(item)
        return
    yield from facts
    if not facts:
        yield _kind(value), name, ast.unparse(value)


def _kind(value: ast.expr) -> str:
    is_one = isinstance(value, ast.Call) and _last(value.func) == "Tolerance"
    return "tolerance" if is_one else "constant"


def _last(function: ast.expr) -> str:
    """Return the last name of what is called."""
    return ast.unparse(function).rsplit(".", 1)[-1]


def _calls(tree: ast.AST, where: str) -> Iterator[tuple[str, str, str]]:
    """Yield the tolerances, cases, relations and skips that a tree makes."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called, last = ast.unparse(node.func), _last(node.func)
        if last == "Override" and node.args:
            keys = {k.arg: k.value for k in node.keywords}
            whom = [f"{n} {ast.unparse(v)}" for n, v in keys.items() if n in _OF]
            output = ast.unparse(node.args[0])
            tolerance = node.args[1] if len(node.args) > 1 else keys.get("tolerance")
            text = ast.unparse(tolerance) if tolerance is not None else ""
            yield (
                "tolerance",
                f"{output} for {', '.join(whom) or 'all sources'}",
                text,
            )
        elif last == "Case" and node.args:
            rest = ", ".join(map(ast.unparse, [*node.args[1:], *node.keywords]))
            yield "case", f"{where}{ast.unparse(node.args[0])}", rest
        elif last.endswith("Relation") and node.args:
            yield "relation", f"{where}{ast.unparse(node.args[0])}", ast.unparse(node)
        elif any(word in called.lower() for word in _SKIPS):
            yield "skip", f"{where}{ast.unparse(node)}", _THERE


_OF = ("source", "case", "constant")


class _Reasons(ast.NodeTransformer):
    """A transformer that drops reasons of tolerances, docstrings, and facts of their own."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call without what is told of it elsewhere."""
        self.generic_visit(node)
        last = _last(node.func)
        return ast.Name(id=f"{last}_") if last in ("Override", "Case") else node


def _without(node: ast.AST) -> ast.AST:
    stripped: Any = _Reasons().visit(ast.parse(ast.unparse(node)))
    for inner in ast.walk(stripped):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and body and isinstance(inner, _HAVE_DOCSTRINGS):
            first = body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                body[:1] = [] if len(body) > 1 else [ast.Pass()]
    return stripped  # type: ignore[no-any-return]


_HAVE_DOCSTRINGS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _tolerance_effect(old: str, new: str) -> str:
    """Return whether a tolerance, as source text, is wider, narrower or other."""
    was, now = _numbers(old), _numbers(new)
    if was is None or now is None:
        return OTHER
    effects = {e for name in _FIELDS if (e := _effect(name, was[name], now[name]))}
    if WIDER in effects or OTHER in effects:
        return WIDER if WIDER in effects else OTHER
    return NARROWER if effects else OTHER


def _numbers(text: str) -> Mapping[str, Any] | None:
    """Return the fields of a tolerance that is written in numbers."""
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call):
            return None
        numbers = {
            n: ast.literal_eval(v) for n, v in zip(_FIELDS, node.args, strict=False)
        }
        numbers |= {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    except (SyntaxError, ValueError):
        return None
    usual: dict[str, Any] = dict.fromkeys(_FIELDS)
    usual["hit_ratio"] = 1.0
    return {**usual, **numbers} if numbers.keys() <= usual.keys() else None


def _effect(name: str, was: Any, now: Any) -> str | None:
    if was == now:
        return None
    if name == "norm_ratio" and was is not None and now is not None:
        return WIDER if now[0] < was[0] or now[1] > was[1] else NARROWER
    if was is None or now is None:
        return WIDER if now is None else NARROWER
    # of these more is stricter
    sign = -1 if name in ("hit_ratio", "cosine") else 1
    return WIDER if sign * now > sign * was else NARROWER
