"""Softmax, renormalised probabilities and masked logits, of one vocabulary each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.probs.workloads import probs_fit, row_settings
from generator.ops.op_types.sampling.family import FEW, VOCABULARIES
from generator.ops.reference_text import reference_text

TIES = "Tokens that tie with the last one kept are kept as well."
# kernel: what it does, its setting, its output
KINDS = {
    "softmax": (
        "Divides each row's logits by its temperature and returns the softmax.",
        Tensor(("batch_size",), "float32", "Each row's temperature, over 0."),
        "probs",
    ),
    "top_k_renorm_probs": (
        (
            "Keeps each row's k most probable tokens, divides their probabilities by their"
            f" sum and returns 0 elsewhere. {TIES}"
        ),
        Tensor(("batch_size",), "int32", "Each row's k, at least 1."),
        "renorm_probs",
    ),
    "top_p_renorm_probs": (
        (
            "Keeps each row's most probable tokens until they hold at least p, the one that"
            " crosses p included, divides their probabilities by their sum and returns 0"
            f" elsewhere. {TIES}"
        ),
        Tensor(("batch_size",), "float32", "Each row's p, over 0 and up to 1."),
        "renorm_probs",
    ),
    "top_k_mask_logits": (
        (
            "Keeps each row's k largest logits as they are and returns minus infinity"
            f" elsewhere. {TIES}"
        ),
        Tensor(("batch_size",), "int32", "Each row's k, at least 1."),
        "masked_logits",
    ),
}
SETTINGS = {"softmax": "temperature", "top_p_renorm_probs": "top_p"}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        probs_spec(kind, size, models)
        for kind in KINDS
        for size, models in VOCABULARIES.items()
        if kind != "top_k_mask_logits" or size in FEW
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = name.rpartition("_v")[0]
    return probs_spec(kind, sizes["v"], (model,)) if kind in KINDS else None


def probs_spec(kind: str, vocab_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one kind for one vocabulary."""
    what, setting, output = KINDS[kind]
    shape = ("batch_size", "vocab_size")
    values = "probs" if "probs" in kind else "logits"
    return Spec(
        name=f"{kind}_v{vocab_size}",
        description=f"{what} In float32.",
        op_type="probs",
        tags=(
            *(f"model:{model}" for model in models),
            f"fi_api:flashinfer.sampling.{kind}",
        ),
        axes={
            "batch_size": Axis("Number of sequences."),
            "vocab_size": Axis("Tokens of the vocabulary.", vocab_size),
        },
        inputs={
            values: Tensor(shape, "float32", f"A row's {values}."),
            SETTINGS.get(kind, "top_k"): setting,
        },
        outputs={output: Tensor(shape, "float32", "What is returned of each row.")},
        reference=reference_text("probs", kind),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=row_settings,
        fits=probs_fit,
    )
