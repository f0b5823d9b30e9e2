"""Models that are trained: the gradients of queries and keys before they turned."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import LLAMA, QWEN, tokens, tokens_fit

# query heads, key heads, their length: models, whose batches
HEADS = {
    (24, 8, 128): (("llama-3.2-3b",), LLAMA),
    (32, 4, 128): (("qwen3-30b-a3b",), QWEN),
    (32, 8, 64): (("llama-3.2-1b",), LLAMA),
    (32, 8, 128): (("llama-3.1-8b", "qwen3-8b"), LLAMA),
    (40, 8, 128): (("qwen3-14b",), QWEN),
    (64, 8, 128): (("llama-3.1-70b", "qwen3-32b"), LLAMA),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(
        rope_spec(heads, kv_heads, dim, models, batches)
        for (heads, kv_heads, dim), (models, batches) in HEADS.items()
    )


def rope_spec(
    heads: int, kv_heads: int, dim: int, models: tuple[str, ...], batches: str
) -> Spec:
    """Return the definition for these numbers of heads."""
    query, key = (
        ("num_tokens", name, "head_dim") for name in ("num_qo_heads", "num_kv_heads")
    )
    angles = ("num_tokens", "half_dim")
    return Spec(
        name=f"rope_backward_neox_style_h{heads}_kv{kv_heads}_d{dim}",
        description=(
            "Gradients of rotary position embedding, NeoX style: dimensions i and"
            " i + half_dim of each head's gradient turn back by the angle by which those"
            " of the head turned. In float32, rounded once to bfloat16."
        ),
        op_type="rope_backward",
        tags=(*(f"model:{model}" for model in models), "mode:training"),
        axes={
            "num_tokens": Axis("Tokens of a batch."),
            "num_qo_heads": Axis("Heads of the queries.", heads),
            "num_kv_heads": Axis("Heads of the keys.", kv_heads),
            "head_dim": Axis("Length of a head.", dim),
            "half_dim": Axis("Pairs of a head.", dim // 2),
        },
        inputs={
            "grad_q": Tensor(query, "bfloat16", "Gradient of the turned queries."),
            "grad_k": Tensor(key, "bfloat16", "Gradient of the turned keys."),
            "cos": Tensor(angles, "float32", "Cosines of each token's angles."),
            "sin": Tensor(angles, "float32", "Sines of each token's angles."),
        },
        outputs={
            "grad_q_in": Tensor(query, "bfloat16", "Gradient of the queries."),
            "grad_k_in": Tensor(key, "bfloat16", "Gradient of the keys."),
        },
        constraints=("half_dim == head_dim // 2",),
        reference=reference_text("rope_backward", "rope_backward_neox_style"),
        captured_from=batches,
        captured_op_type="gemm",
        structure=tokens,
        fits=tokens_fit,
    )
