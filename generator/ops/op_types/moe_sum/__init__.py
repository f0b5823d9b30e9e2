"""The sum of what a token's experts return, times the model's factor."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "moe_sum",
    name_tokens={"k": "topk", "h": "hidden_size"},
    figures={
        "topk": Figure(("num_experts_per_tok",)),
        "hidden_size": Figure(("hidden_size",)),
    },
    absent={"flashinfer": "FlashInfer's experts add up inside their kernels"},
)
