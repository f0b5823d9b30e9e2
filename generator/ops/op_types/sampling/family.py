"""Sampling of tokens from probabilities or logits, filtered or not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.sampling import workloads
from generator.ops.reference_text import reference_text

# vocabulary size: the models that have it
VOCABULARIES = {
    32_000: ("mistral-7b-v0.1", "mixtral-8x7b", "mixtral-8x22b"),
    100_352: ("granite-4.1-8b", "phi-4-14b"),
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
    201_088: ("gpt-oss-20b", "gpt-oss-120b"),
    202_048: ("llama-4-scout",),
    262_208: ("gemma-3-27b",),
}
TOP_K = "The k most probable tokens are kept; a k that is not positive keeps all."
TOP_P = (
    "The most probable tokens are kept until they hold at least p{of}, the token that"
    " crosses p included; p <= 0 keeps the most probable token alone."
)
TIES = "Of tokens that tie at the boundary any may be kept."
MIN_P = (
    "Of the tokens those are kept that have at least the share min_p of the largest"
    " probability."
)
ALL = "No token is left out."
BOTH = f"{TOP_K} Of these, renormalised: {TOP_P.format(of=' of them')}"
# kernel: what it keeps
KINDS = {
    "top_k_sampling_from_probs": f"{TOP_K} {TIES}",
    "top_p_sampling_from_probs": f"{TOP_P.format(of='')} {TIES}",
    "top_k_top_p_sampling_from_probs": f"{BOTH} {TIES}",
    "min_p_sampling": MIN_P,
    "sampling_from_probs": ALL,
    "sampling_from_logits": ALL,
    "top_k_top_p_sampling_from_logits": f"{BOTH} {TIES}",
}
INPUTS = {
    "top_k": Tensor(("batch_size",), "int32", "Each row's k."),
    "top_p": Tensor(("batch_size",), "float32", "Each row's p."),
    "min_p": Tensor(("batch_size",), "float32", "Each row's share."),
}
# Llama 3's and Qwen3's
FEW = (128_256, 151_936)
# kinds that engines call for few models → how many of those vocabularies they have
_OF_FEW = {
    "sampling_from_probs": 1,
    "sampling_from_logits": 1,
    "top_k_top_p_sampling_from_logits": 2,
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        sampling_spec(kind, size, models)
        for kind in KINDS
        for size, models in VOCABULARIES.items()
        if kind not in _OF_FEW or size in FEW[: _OF_FEW[kind]]
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    kind = name.rpartition("_v")[0]
    return sampling_spec(kind, sizes["v"], (model,)) if kind in KINDS else None


def sampling_spec(kind: str, vocab_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition of one kind for one vocabulary.

    FlashInfer's traces describe all but the first three by an argmax. That is no sampling:
    its kernels draw, also with deterministic=True.
    """
    api = "min_p_sampling_from_probs" if kind == "min_p_sampling" else kind
    rows = "probabilities"
    source = Tensor(("batch_size", "vocab_size"), "float32", "Probabilities, 1 a row.")
    if "logits" in kind:
        rows = "softmax of the logits"
        source = replace(source, description="Logits.")
    arguments = {name: tensor for name, tensor in INPUTS.items() if name in kind}
    return Spec(
        name=f"{kind}_v{vocab_size}",
        description=(
            f"Draws one token a row in proportion to the {rows}"
            f"{'' if KINDS[kind] == ALL else ' that a filter keeps'}. {KINDS[kind]}"
            " Draws are those of torch's generator."
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
            "logits" if "logits" in kind else "probs": source,
            **arguments,
        },
        outputs={"samples": Tensor(("batch_size",), "int64", "The drawn tokens.")},
        reference=reference_text("sampling", kind),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=workloads.settings,
        fits=workloads.probabilities_fit,
    )
