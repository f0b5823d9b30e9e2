"""Constraints: expressions over axes and inputs, which a definition's workloads obey."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from generator.dataset.constraints import (
    FUNCTIONS,
    TensorValue,
    Unknown,
    Unsupported,
    evaluate,
)
from generator.dataset.definition import Definition
from generator.dataset.python_source import Unparsable, parse_expression
from generator.problems import Problem
from generator.problems.messages import did_you_mean, one_line, quote
from generator.problems.pointer import pointer
from generator.problems.rule import blocking, error, note

CONSTRAINT_SYNTAX = blocking(
    "constraint-syntax",
    "A constraint is not a Python expression.",
    "Write one expression over axes and inputs, such as `n == m + 1`.",
    '`"len_indptr == "`',
)
CONSTRAINT_NAME = blocking(
    "constraint-name",
    "A constraint uses a name that is no axis, input or known function.",
    "Use the names of axes and inputs.",
    '`"len_indptr == batch + 1"` where the axis is batch_size',
)
WORKLOAD_CONSTRAINT = error(
    "workload-constraint",
    "A workload breaks a constraint of its definition.",
    "Correct the workload, or the constraint if it demands too much.",
    "len_indptr is 8 and batch_size 8 under `len_indptr == batch_size + 1`",
)
CONSTRAINT_UNCHECKED = note(
    "constraint-unchecked",
    "A constraint is written so that it can't be checked without running it.",
    "Write it with comparisons, arithmetic, len, shapes and the like.",
    "`torch.all(a <= b)`",
)


_SHOWN = 6
"""Values that a message shows of a constraint that does not hold."""

_STATEFUL = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda)


def names_in(constraint: str) -> frozenset[str]:
    """Return the names that an expression reads; none if it does not parse."""
    try:
        tree = parse_expression(constraint)
    except Unparsable:
        return frozenset()
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return frozenset(name.id for name in names) - bound


def check(definition: Definition) -> list[Problem]:
    """Return Problems for constraints that don't parse or use unknown names."""
    known = {*definition.axes, *definition.inputs, *FUNCTIONS}
    problems = []
    for index, constraint in enumerate(definition.constraints):
        where = pointer(("constraints", index))
        reason = _syntax_defect(constraint)
        if reason is not None:
            message = f"The constraint {quote(constraint)} {reason}."
            problems.append(
                CONSTRAINT_SYNTAX.problem(definition.path, message, pointer=where)
            )
            continue
        for name in sorted(names_in(constraint) - known):
            message = (
                f"The constraint {quote(constraint)} uses {quote(name)}, which is no "
                f"axis and no input.{did_you_mean(name, known)}"
            )
            problems.append(
                CONSTRAINT_NAME.problem(definition.path, message, pointer=where)
            )
    return problems


def _syntax_defect(constraint: str) -> str | None:
    try:
        tree = parse_expression(constraint)
    except Unparsable as error:
        return f"does not parse: {error.reason}"
    for node in ast.walk(tree):
        if isinstance(node, _STATEFUL):
            return f"uses {type(node).__name__}, which states no condition"
    return None


def check_constraints(
    definition: Definition,
    axes: Mapping[str, int],
    values: Mapping[str, Any],
    unchecked: dict[int, str],
    file: str,
    number: int,
) -> Iterator[Problem]:
    """Yield a Problem for each constraint that a workload breaks.

    A constraint over random inputs is left alone; one that can't be evaluated goes
    into `unchecked`, by its place, with the reason.
    """
    names = {**axes, **values}
    for index, constraint in enumerate(definition.constraints):
        try:
            tree = parse_expression(constraint)
            if evaluate(tree, names):
                continue
        except (Unparsable, Unknown):
            # what does not parse is a Problem of the definition
            continue
        except Unsupported as error:
            unchecked.setdefault(index, str(error))
            continue
        message = f"The constraint {quote(constraint, 200)} does not hold"
        shown = _shown(constraint, names)
        yield WORKLOAD_CONSTRAINT.problem(
            file,
            f"{message}{shown}.",
            pointer="/workload",
            line=number,
        )


def check_unchecked(
    definition: Definition, unchecked: Mapping[int, str]
) -> Iterator[Problem]:
    """Yield a note for each constraint that was not evaluated."""
    for index, reason in unchecked.items():
        constraint = quote(definition.constraints[index], 200)
        yield CONSTRAINT_UNCHECKED.problem(
            definition.path,
            f"The constraint {constraint} was not checked: {one_line(reason)}.",
            pointer=pointer(("constraints", index)),
        )


def _shown(constraint: str, names: Mapping[str, Any]) -> str:
    """Return the numbers that a constraint is about: `: a is 1, b[-1] is 2`."""
    parts = []
    for name in sorted(names_in(constraint)):
        value = names.get(name)
        if isinstance(value, (bool, int, float)):
            parts.append(f"{name} is {value}")
        elif isinstance(value, TensorValue) and f"{name}[-1]" in constraint:
            if value.values:
                parts.append(f"{name}[-1] is {value.values[-1]}")
        elif isinstance(value, TensorValue):
            parts.append(f"{name} has the shape {list(value.shape)}")
    return f": {', '.join(parts[:_SHOWN])}" if parts else ""
