"""Routing alone: each token's experts and their weights."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "moe_routing",
    name_tokens={"e": "num_experts", "k": "topk"},
    name_constants={"ng": "n_group", "kg": "topk_group"},
    name_words={
        "softmax": ("scoring_func", "softmax"),
        "sigmoid": ("scoring_func", "sigmoid"),
        "deepseek": ("scoring_func", "sigmoid"),
        "sqrtsoftplus": ("scoring_func", "sqrtsoftplus"),
        "hash": ("scoring_func", "sqrtsoftplus"),
    },
    constants={"scoring_func": None},
    variant_constants=("n_group", "topk_group"),
    figures={
        "num_experts": Figure(("num_experts", "n_routed_experts", "num_local_experts")),
        "topk": Figure(("num_experts_per_tok",)),
    },
)
