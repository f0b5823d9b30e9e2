"""Speculative sampling of chains, of one vocabulary each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.speculative_sampling import workloads
from generator.ops.reference_text import reference_text

# vocabulary size: models that come with layers that draft
VOCABULARIES = {
    129_280: ("deepseek-v3", "deepseek-r1", "deepseek-v3.2"),
    151_552: ("glm-4.6",),
    151_936: ("qwen3-next-80b-a3b",),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(chain_spec(size, models) for size, models in VOCABULARIES.items())


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec:
    """Return the definition of a name for a model."""
    return chain_spec(sizes["v"], (model,))


def chain_spec(vocab_size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one vocabulary.

    The interface is that of FlashInfer's traces. Their reference is another algorithm:
    it accepts where the target is no less than the draft, and takes the most probable.
    """
    chain = ("batch_size", "num_speculative")
    longer = ("batch_size", "num_speculative_plus_1")
    return Spec(
        name=f"chain_speculative_sampling_v{vocab_size}",
        description=(
            "Accepts the drafted tokens of each chain in order, each with the probability"
            " target / draft, until the first rejection; then draws one token from what"
            " the target has more than the draft, or from the target's last row where"
            " all were accepted. -1 stands behind it. Draws are those of torch's"
            " generator."
        ),
        op_type="speculative_sampling",
        tags=(
            *(f"model:{model}" for model in models),
            "fi_api:flashinfer.sampling.chain_speculative_sampling",
        ),
        axes={
            "batch_size": Axis("Number of sequences."),
            "num_speculative": Axis("Drafted tokens of each."),
            "num_speculative_plus_1": Axis("Drafted tokens + 1."),
            "vocab_size": Axis("Tokens of the vocabulary.", vocab_size),
        },
        inputs={
            "draft_probs": Tensor(
                (*chain, "vocab_size"), "float32", "What drafts were drawn from."
            ),
            "draft_token_ids": Tensor(chain, "int32", "The drafted tokens."),
            "target_probs": Tensor(
                (*longer, "vocab_size"), "float32", "The model's own probabilities."
            ),
        },
        outputs={
            "accepted_token_ids": Tensor(
                longer, "int32", "Accepted drafts, one token more, then -1."
            )
        },
        constraints=("num_speculative_plus_1 == num_speculative + 1",),
        reference=reference_text("speculative_sampling", "chain_speculative_sampling"),
        captured_from="fused_add_rmsnorm_h4096",
        captured_op_type="rmsnorm",
        structure=workloads.drafted,
        fits=workloads.chains_fit,
    )
