"""Sampling of tokens from probabilities: top-k, top-p, and top-k before top-p."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.sampling import workloads
from generator.ops.reference_text import reference_text

# vocabulary size: the models that have it
VOCABULARIES = {
    128_256: (
        "llama-3.1-8b",
        "llama-3.1-70b",
        "llama-3.1-405b",
        "llama-3.2-3b",
        "llama-3.3-70b",
    ),
    129_280: ("deepseek-v3", "deepseek-r1"),
    151_936: (
        "qwen3-8b",
        "qwen3-14b",
        "qwen3-30b-a3b",
        "qwen3-32b",
        "qwen3-235b-a22b",
    ),
    152_064: ("qwen2.5-7b", "qwen2.5-72b"),
    200_064: ("minimax-m2",),
    202_048: ("llama-4-scout",),
    262_208: ("gemma-3-27b",),
}
TOP_K = "The k most probable tokens are kept; a k that is not positive keeps all."
TOP_P = (
    "The most probable tokens are kept until they hold at least p{of}, the token that"
    " crosses p included; p <= 0 keeps the most probable token alone."
)
TIES = "Of tokens that tie at the boundary any may be kept."
# filters of a kind: what they do
FILTERS = {
    "top_k": TOP_K,
    "top_p": TOP_P.format(of=""),
    "top_k_top_p": f"{TOP_K} Of these, renormalised: {TOP_P.format(of=' of them')}",
}
INPUTS = {
    "top_k": Tensor(("batch_size",), "int32", "Each row's k."),
    "top_p": Tensor(("batch_size",), "float32", "Each row's p."),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        sampling_spec(kind, size, models)
        for kind in FILTERS
        for size, models in VOCABULARIES.items()
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = name.partition("_sampling_from_probs_")[0]
    return sampling_spec(kind, sizes["v"], (model,)) if kind in FILTERS else None


def sampling_spec(kind: str, vocab_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one kind of filter for one vocabulary."""
    api = f"{kind}_sampling_from_probs"
    given = {name: tensor for name, tensor in INPUTS.items() if name in kind}
    return Spec(
        name=f"{api}_v{vocab_size}",
        description=(
            "Draws one token a row in proportion to the probabilities that a filter"
            f" keeps. {FILTERS[kind]} {TIES} Draws are those of torch's generator."
        ),
        op_type="sampling",
        tags=(
            *(f"model:{model}" for model in models),
            f"fi_api:flashinfer.sampling.{api}",
        ),
        axes={
            "batch_size": Axis("Number of sequences."),
            "vocab_size": Axis("Tokens of the vocabulary.", vocab_size),
        },
        inputs={
            "probs": Tensor(
                ("batch_size", "vocab_size"), "float32", "Probabilities, 1 a row."
            ),
            **given,
        },
        outputs={"samples": Tensor(("batch_size",), "int64", "The drawn tokens.")},
        reference=reference_text("sampling", api),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=workloads.settings,
        fits=workloads.probabilities_fit,
    )
