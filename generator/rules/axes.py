"""Axes: every one that a shape names is declared, and every declared one is used."""

from __future__ import annotations

from generator.definition import Definition
from generator.pointer import pointer
from generator.problems import Problem
from generator.rules.constraints import names_in
from generator.rules.names import name_tokens
from generator.rules.table import finding
from generator.wording import did_you_mean, quote


def check_declared(definition: Definition) -> list[Problem]:
    """Return a Problem for each place of a shape that names no declared axis."""
    groups = {"inputs": definition.inputs, "outputs": definition.outputs}
    return [
        finding(
            "axis-undeclared",
            definition.path,
            f"The axis {quote(axis)} in the shape of {quote(tensor.name)} is not "
            f"declared.{did_you_mean(axis, definition.axes)}",
            pointer=pointer((group, tensor.name, "shape", place)),
        )
        for group, tensors in groups.items()
        for tensor in tensors.values()
        for place, axis in enumerate(tensor.shape or ())
        if axis not in definition.axes
    ]


def check_case(definition: Definition) -> list[Problem]:
    """Return a Problem for each axis that another one differs from only by case."""
    first: dict[str, str] = {}
    problems = []
    for axis in definition.axes:
        other = first.setdefault(axis.upper(), axis)
        if other != axis:
            problems.append(
                finding(
                    "axis-case",
                    definition.path,
                    f"The axes {quote(other)} and {quote(axis)} differ only by case.",
                    pointer=pointer(("axes", axis)),
                )
            )
    return problems


def check_used(definition: Definition) -> list[Problem]:
    """Return a Problem for each axis that nothing depends on.

    A constant may live in the definition's name alone (`topk8` for `top_k`).
    """
    used = {
        axis
        for tensor in (*definition.inputs.values(), *definition.outputs.values())
        for axis in tensor.shape or ()
    }
    for constraint in definition.constraints:
        used |= names_in(constraint)
    tokens = {token for token, _ in name_tokens(definition.name)}
    problems = []
    for axis in definition.axes.values():
        if axis.name in used:
            continue
        is_constant = axis.value is not None
        if is_constant and axis.name.replace("_", "").lower() in tokens:
            continue
        rule = "axis-unused-const" if is_constant else "axis-unused"
        message = f"The axis {quote(axis.name)} is used nowhere."
        where = pointer(("axes", axis.name))
        problems.append(finding(rule, definition.path, message, pointer=where))
    return problems


def check_overlap(definition: Definition) -> list[Problem]:
    """Return a Problem for each output that has the name of an input."""
    return [
        finding(
            "input-output-overlap",
            definition.path,
            f"The output {quote(name)} has the name of an input.",
            pointer=pointer(("outputs", name)),
        )
        for name in definition.outputs
        if name in definition.inputs
    ]
