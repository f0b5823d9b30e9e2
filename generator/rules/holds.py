"""Constraints on real values: each workload obeys those of its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generator.definition import Definition
from generator.evaluate import TensorValue, Unknown, Unsupported, evaluate
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.python import Unparsable, parse_expression
from generator.rules.table import finding
from generator.wording import one_line, quote

_SHOWN = 6


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
        yield finding(
            "workload-constraint",
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
        yield finding(
            "constraint-unchecked",
            definition.path,
            f"The constraint {constraint} was not checked: {one_line(reason)}.",
            pointer=pointer(("constraints", index)),
        )


def _shown(constraint: str, names: Mapping[str, Any]) -> str:
    """Return the numbers that a constraint is about: `: a is 1, b[-1] is 2`."""
    from generator.rules.constraints import names_in

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
