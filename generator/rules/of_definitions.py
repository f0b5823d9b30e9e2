"""The rules on definitions: names, interface, reference."""

from __future__ import annotations

from generator.rules.rule import blocking, error, warning

NAMES = (
    blocking(
        "name-unsafe",
        "A name can't be used as an identifier.",
        "Use letters, digits and underscores, begin with a letter, at most 200.",
    ),
    blocking(
        "name-file",
        "The definition's name is not the file's name.",
        "Make the two the same.",
    ),
    blocking(
        "name-op-type",
        "The definition's op_type is not the folder's name.",
        "Make the two the same.",
    ),
    error(
        "name-token",
        "The definition's name states a constant that its axes contradict.",
        "Correct the name or the axis.",
    ),
    blocking(
        "name-duplicate",
        "Two files define the same name.",
        "Rename or remove one of them.",
    ),
    blocking(
        "name-case",
        "Two names differ only by case: some file systems hold only one of them.",
        "Rename one of them.",
    ),
)

INTERFACE = (
    blocking(
        "axis-undeclared",
        "A shape names an axis that the definition does not declare.",
        "Declare the axis or correct the shape.",
    ),
    blocking(
        "axis-case",
        "Two axes differ only by case; a rendered test writes them in capitals.",
        "Rename one of them.",
    ),
    error(
        "axis-unused",
        "A variable axis appears in no shape and no constraint.",
        "Use the axis in a shape or remove it.",
    ),
    warning(
        "axis-unused-const",
        "A constant axis appears in no shape, no constraint and not in the name.",
        "Use the axis or remove it.",
    ),
    error(
        "input-output-overlap",
        "An output has the name of an input.",
        "Rename the output.",
    ),
    blocking(
        "constraint-syntax",
        "A constraint is not a Python expression.",
        "Write one expression over axes and inputs, such as `n == m + 1`.",
    ),
    blocking(
        "constraint-name",
        "A constraint uses a name that is no axis, input or known function.",
        "Use the names of axes and inputs.",
    ),
)

REFERENCE = (
    blocking(
        "reference-syntax",
        "The reference is not valid Python.",
        "Correct the source at that line.",
    ),
    blocking(
        "reference-no-run",
        "The reference has no top-level function `run`.",
        "Define `def run(...)` at the top level, with the inputs as parameters.",
    ),
    blocking(
        "reference-run-kind",
        "The reference's `run` is not a plain function.",
        "Write it as `def run(...)` that returns its outputs.",
    ),
    blocking(
        "reference-parameters",
        "The parameters of `run` are not the inputs in their order.",
        "List the inputs as parameters, in the order of `inputs`.",
    ),
    error(
        "reference-returns",
        "The reference's `run` does not return one value for each output.",
        "Return a tensor, or a tuple in the order of `outputs`.",
    ),
    warning(
        "reference-import",
        "The reference imports more than torch, numpy, math and typing.",
        "Write the computation in plain PyTorch.",
    ),
)
