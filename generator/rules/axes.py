"""Axes: every one that a shape names is declared, and every declared one is used."""

from __future__ import annotations

from generator.dataset.definition import Definition
from generator.problems import Problem
from generator.problems.messages import did_you_mean, quote
from generator.problems.pointer import pointer
from generator.problems.rule import blocking, error, warning
from generator.rules.constraints import names_in
from generator.rules.names import name_tokens

AXIS_UNDECLARED = blocking(
    "axis-undeclared",
    "A shape names an axis that the definition does not declare.",
    "Declare the axis or correct the shape.",
    '`"shape": ["M", "Q"]` without an axis Q',
)
AXIS_CASE = blocking(
    "axis-case",
    "Two axes differ only by case; a rendered test writes them in capitals.",
    "Rename one of them.",
    "the axes M and m",
)
AXIS_UNUSED = error(
    "axis-unused",
    "A variable axis appears in no shape and no constraint.",
    "Use the axis in a shape or remove it.",
    '`"L": {"type": "var"}` that no shape names',
)
AXIS_UNUSED_CONST = warning(
    "axis-unused-const",
    "A constant axis appears in no shape, no constraint and not in the name.",
    "Use the axis or remove it.",
    '`"L": {"type": "const", "value": 2}` that no shape names',
)
INPUT_OUTPUT_OVERLAP = error(
    "input-output-overlap",
    "An output has the name of an input.",
    "Rename the output.",
    "the input `state` and the output `state`",
)


def check_declared(definition: Definition) -> list[Problem]:
    """Return a Problem for each place of a shape that names no declared axis."""
    groups = {"inputs": definition.inputs, "outputs": definition.outputs}
    return [
        AXIS_UNDECLARED.problem(
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
                AXIS_CASE.problem(
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
        rule = AXIS_UNUSED_CONST if is_constant else AXIS_UNUSED
        message = f"The axis {quote(axis.name)} is used nowhere."
        where = pointer(("axes", axis.name))
        problems.append(rule.problem(definition.path, message, pointer=where))
    return problems


def check_overlap(definition: Definition) -> list[Problem]:
    """Return a Problem for each output that has the name of an input."""
    return [
        INPUT_OUTPUT_OVERLAP.problem(
            definition.path,
            f"The output {quote(name)} has the name of an input.",
            pointer=pointer(("outputs", name)),
        )
        for name in definition.outputs
        if name in definition.inputs
    ]
