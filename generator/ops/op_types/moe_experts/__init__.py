"""Experts of given tokens, in bfloat16, float8 by blocks, and mxfp4."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

# of mxfp4 a byte is an exponent
_SCALES = {"int8": "powers-of-two", "float32": "non-negative"}

SPEC = OpSpec(
    "moe_experts",
    name_tokens={
        "topk": ("top_k", "top_k_and_shared"),
        "e": ("num_experts", "num_all_experts"),
        "h": "hidden_size",
        "i": "intermediate_size",
    },
    name_words={"scaled": ("scales_input", True)},
    variant_constants=("scales_input",),
    absent={
        "flashinfer": "cutlass_fused_moe compiles for 7 minutes, "
        "CuTe DSL's kernel was never run"
    },
    figures={
        "num_experts": Figure(
            ("num_experts", "n_routed_experts", "num_local_experts"), "ep"
        ),
        "num_all_experts": Figure(
            ("n_routed_experts", "n_shared_experts"), takes="sum"
        ),
        "top_k": Figure(("num_experts_per_tok",)),
        "top_k_and_shared": Figure(
            ("num_experts_per_tok", "n_shared_experts"), takes="sum"
        ),
        "hidden_size": Figure(("hidden_size",)),
    },
    domains={"w13_scale": _SCALES, "w2_scale": _SCALES},
)
