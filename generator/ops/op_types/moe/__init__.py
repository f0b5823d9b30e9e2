"""Routing and experts, with fp8 and fp4 weights."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "moe",
    name_tokens={
        "e": ("num_local_experts", "num_weight_rows", "num_experts"),
        "h": "hidden_size",
        "i": "intermediate_size",
    },
    name_constants={"topk": "top_k", "ng": "n_group", "kg": "topk_group"},
    constants={"top_k": None, "n_group": 1, "topk_group": 1},
    figures={
        "num_experts": Figure(
            ("num_experts", "n_routed_experts", "num_local_experts"), "ep"
        ),
        "top_k": Figure(("num_experts_per_tok",)),
        "hidden_size": Figure(("hidden_size",)),
    },
)
