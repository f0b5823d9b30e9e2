"""Rows sent to the GPUs of their experts, and what these return added up: all-to-all."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "moe_exchange",
    name_tokens={"ep": "world_size", "topk": "top_k", "h": "hidden_size"},
    name_constants={"e": "num_experts"},
    variant_constants=("num_experts",),
    figures={
        "num_experts": Figure(("num_experts", "n_routed_experts", "num_local_experts")),
        "top_k": Figure(("num_experts_per_tok",)),
        "hidden_size": Figure(("hidden_size",)),
    },
    absent={
        "flashinfer": "FlashInfer's all-to-all needs memory that several GPUs map",
        "sglang": "SGLang's dispatchers call DeepEP and others, which need several GPUs",
    },
)
