"""Constraints: expressions over axes and inputs, which a definition's workloads obey."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.python_source import Unparsable, parse_expression
from generator.problems import Problem, blocking, error, note
from generator.problems.messages import did_you_mean, one_line, quote
from kernel_judge.constraints import (
    FUNCTIONS,
    TensorValue,
    Unknown,
    Unsupported,
    evaluate,
)

CONSTRAINT_SYNTAX = blocking("""constraint-syntax: A constraint is not a Python
    expression.
    Fix: Write one expression over axes and inputs, such as `n == m + 1`.
    Finds: `"len_indptr == "`""")
CONSTRAINT_NAME = blocking("""constraint-name: A constraint uses a name that is no axis,
    input or known function.
    Fix: Use the names of axes and inputs.
    Finds: `"len_indptr == batch + 1"` where the axis is batch_size""")
WORKLOAD_CONSTRAINT = error("""workload-constraint: A workload breaks a constraint of
    its definition.
    Fix: Correct the workload, or the constraint if it demands too much.
    Finds: len_indptr is 8 and batch_size 8 under `len_indptr == batch_size + 1`""")
CONSTRAINT_UNCHECKED = note("""constraint-unchecked: A constraint is written so that it
    can't be checked without running it.
    Fix: Write it with comparisons, arithmetic, len, shapes and the like.
    Finds: `torch.all(a <= b)`""")

_SHOWN = 6
"""Values that a message shows of a constraint that does not hold."""

_STATEFUL = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda)


# asked by several rules, and many definitions have the same constraints
@lru_cache(maxsize=1024)
def names_in(constraint: str) -> frozenset[str]:
    """Return the names that an expression reads; none if it does not parse."""
    try:
        tree = parse_expression(constraint)
    except Unparsable:
        return frozenset()
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return frozenset(name.id for name in names) - bound


def check(definition: LoadedDefinition) -> Iterator[Problem]:
    """Yield Problems for constraints that don't parse or use unknown names."""
    known = {*definition.axes, *definition.inputs, *FUNCTIONS}
    for index, constraint in enumerate(definition.constraints):
        where, shown = ("constraints", index), f"The constraint {quote(constraint)}"
        try:
            nodes = ast.walk(parse_expression(constraint))
        except Unparsable as error:
            message = f"{shown} does not parse: {error.reason}."
            yield CONSTRAINT_SYNTAX.at(message, *where)
            continue
        stateful = next((node for node in nodes if isinstance(node, _STATEFUL)), None)
        if stateful is not None:
            kind = type(stateful).__name__
            message = f"{shown} uses {kind}, which states no condition."
            yield CONSTRAINT_SYNTAX.at(message, *where)
            continue
        for name in sorted(names_in(constraint) - known):
            message = f"{shown} uses {quote(name)}, which is no axis and no input."
            yield CONSTRAINT_NAME.at(message + did_you_mean(name, known), *where)


def check_workload(
    definition: LoadedDefinition,
    axes: Mapping[str, int],
    values: Mapping[str, Any],
    unchecked: dict[int, str],
) -> Iterator[Problem]:
    """Yield a Problem for each constraint that a workload breaks.

    A constraint over random inputs is left alone; one that can't be evaluated goes
    into `unchecked`, by its place, with the reason.
    """
    names = {**axes, **values}
    for index, constraint in enumerate(definition.constraints):
        try:
            if evaluate(parse_expression(constraint), names):
                continue
        except (Unparsable, Unknown):
            # what does not parse is a Problem of the definition
            continue
        except Unsupported as error:
            unchecked.setdefault(index, str(error))
            continue
        message = f"The constraint {quote(constraint, 200)} does not hold"
        shown = ", ".join(list(_shown(constraint, names))[:_SHOWN])
        message += f": {shown}." if shown else "."
        yield WORKLOAD_CONSTRAINT.at(message, "workload")


def check_unchecked(
    definition: LoadedDefinition, unchecked: Mapping[int, str]
) -> Iterator[Problem]:
    """Yield a note for each constraint of a definition that was not evaluated."""
    for index, reason in unchecked.items():
        constraint = quote(definition.constraints[index], 200)
        message = f"The constraint {constraint} was not checked: {one_line(reason)}."
        where = f"/constraints/{index}"
        yield CONSTRAINT_UNCHECKED.problem(definition.path, message, pointer=where)


def _shown(constraint: str, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that a constraint is about: `a is 1`, `b[-1] is 2`."""
    for name in sorted(names_in(constraint)):
        value = names.get(name)
        if isinstance(value, (bool, int, float)):
            yield f"{name} is {value}"
        elif isinstance(value, TensorValue) and f"{name}[-1]" not in constraint:
            yield f"{name} has the shape {list(value.shape)}"
        elif isinstance(value, TensorValue) and value.values:
            yield f"{name}[-1] is {value.values[-1]}"
