"""Generic mutants: defects that the syntax tree of any reference allows."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from generator.mutation.generic import (
    calls,
    constants,
    operators,
    places,
    precision,
    statements,
)
from generator.mutation.generic.code import Edit, SourceCode, at_path
from generator.mutation.generic.mutant import Mutant
from generator.problems.messages import one_line

OPERATORS: tuple[Callable[[SourceCode], Iterator[Edit]], ...] = (
    constants.numbers,
    constants.flags,
    constants.axes,
    operators.binary,
    operators.comparisons,
    operators.logic,
    operators.sides,
    operators.terms,
    places.slices,
    places.ranges,
    places.indices,
    calls.dropped,
    calls.transposes,
    calls.functions,
    calls.orders,
    calls.masks,
    calls.arguments,
    precision.casts,
    precision.sums,
    precision.dtypes,
    statements.left_out,
    statements.accumulations,
    statements.conditions,
)
_SHOWN = 60


def generic_mutants(source: str) -> tuple[Mutant, ...]:
    """Return all mutants of a reference's source, in the order of their places.

    Edits that give the same tree are one mutant; an edit that leaves the tree as it is
    gives none. Raises SyntaxError or ValueError if `source` is not Python.
    """
    code = SourceCode.parse(source)
    edits = [edit for operator in OPERATORS for edit in operator(code)]
    edits.sort(key=lambda edit: (edit.node.lineno, edit.node.col_offset))
    paths = code.paths
    known = {path: ast.dump(at_path(code.tree, path)) for path in {*paths.values()}}
    seen = {*known.items()}
    mutants = []
    for edit in edits:
        changed = code.with_edit(edit)
        # what lies beside the statement that an edit changes is what it was
        path = paths[edit.node]
        statement = path, ast.dump(at_path(ast.parse(changed), path))
        if statement not in seen:
            seen.add(statement)
            mutants.append(_mutant(code, edit, changed))
    return tuple(mutants)


def _mutant(code: SourceCode, edit: Edit, changed: str) -> Mutant:
    line, column = edit.node.lineno, edit.node.col_offset
    old = _short(code.text_of(edit.node))
    new = _short(edit.text)
    return Mutant(
        f"{edit.kind} {line}:{column} {old} → {new}",
        edit.kind,
        line,
        _lines(code.source, line, line),
        _lines(changed, line, line),
        changed,
        edit,
    )


def _short(text: str) -> str:
    return one_line(" ".join(text.split()), _SHOWN)


def _lines(source: str, first: int, last: int) -> str:
    return "\n".join(source.splitlines()[first - 1 : last]).strip()
