"""Rotary position embedding with a cache of cosines and sines."""

from __future__ import annotations

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.rope import workloads
from generator.ops.reference_text import reference_text

HEAD_SIZE = 128
ROTARY_DIM = 64


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (rope_spec(),)


def rope_spec() -> Spec:
    """Return the definition of MiniMax-M2, which rotates half of each head."""
    query, key = (
        ("num_tokens", heads, "head_size") for heads in ("num_qo_heads", "num_kv_heads")
    )
    return Spec(
        name=f"rope_with_cos_sin_cache_neox_style_d{HEAD_SIZE}_rd{ROTARY_DIM}",
        description=(
            "Rotary position embedding, NeoX style: dimension i of a head turns with"
            " dimension i + rotary_dim / 2; those from rotary_dim on pass through."
            " A row of the cache is the cosines of a position, then its sines."
        ),
        op_type="rope",
        tags=(
            "model:minimax-m2",
            "fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace",
        ),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "num_qo_heads": Axis("Query heads."),
            "num_kv_heads": Axis("Key heads."),
            "head_size": Axis("Length of a head.", HEAD_SIZE),
            "rotary_dim": Axis("Leading dimensions of a head that turn.", ROTARY_DIM),
            "max_seq_len": Axis("Positions of the cache."),
        },
        inputs={
            "q": Tensor(query, "bfloat16", "Queries."),
            "k": Tensor(key, "bfloat16", "Keys."),
            "cos_sin_cache": Tensor(
                ("max_seq_len", "rotary_dim"),
                "float32",
                "rotary_dim / 2 cosines of each position, then as many sines.",
            ),
            "positions": Tensor(
                ("num_tokens",), "int64", "Each token's row of the cache."
            ),
        },
        outputs={
            "q_out": Tensor(query, "bfloat16", "Turned queries."),
            "k_out": Tensor(key, "bfloat16", "Turned keys."),
        },
        reference=reference_text("rope", "rope_with_cos_sin_cache_neox_style"),
        captured_from="gemm_n2048_k4096",
        captured_op_type="gemm",
        structure=workloads.positions,
        fits=workloads.positions_fit,
    )
