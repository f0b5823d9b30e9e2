"""The rules on constants that the interface does not carry, and on rendered files."""

from __future__ import annotations

from generator.rules.rule import error, warning

CONSTANTS = (
    error(
        "constant-disagrees",
        "A constant of the reference (eps, say) is not what an independent source says.",
        "Find out which one is right: correct the reference, or the model: tag.",
        "`EPS = 1e-5` in a norm of qwen3-14b, whose eps is 1e-6",
    ),
    error(
        "constant-models-disagree",
        "The models that a definition's tags name have different values of a constant.",
        "Keep the model: tags of models that share the constant; give the others a "
        "definition of their own.",
        "an rmsnorm with model:qwen3-14b and model:llama-3.1-8b",
    ),
    warning(
        "constant-not-independent",
        "A constant has no source but the reference, so no test proves it.",
        "Tag the definition with a model whose figures are known (model:NAME).",
        "an rmsnorm whose tags name no model that is known",
    ),
)
RENDERED = (
    error(
        "rendered-file-edited",
        "A rendered file is not what gen-tests wrote last: somebody edited it.",
        "Move the change to the definition or the op's module and render with --force, "
        "or keep the file under another name.",
        "a tolerance changed in tests/references/test_gemm.py",
    ),
)
