"""The rules on constants that the interface does not carry, and on rendered files."""

from __future__ import annotations

from generator.rules.rule import error, warning

CONSTANTS = (
    error(
        "constant-disagrees",
        "A constant of the reference (eps, say) is not what an independent source says.",
        "Find out which one is right: correct the reference, or the model: tag.",
    ),
    error(
        "constant-models-disagree",
        "The models that a definition's tags name have different values of a constant.",
        "Keep the model: tags of models that share the constant; give the others a "
        "definition of their own.",
    ),
    warning(
        "constant-not-independent",
        "A constant has no source but the reference, so no test proves it.",
        "Tag the definition with a model whose figures are known (model:NAME).",
    ),
)
RENDERED = (
    error(
        "rendered-file-edited",
        "A rendered file is not what gen-tests wrote last: somebody edited it.",
        "Move the change to the definition or the op's module and render with --force, "
        "or keep the file under another name.",
    ),
)
