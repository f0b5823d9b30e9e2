"""Linear attention with a decay for each head, as in MiniMax-M1: decode and prefill."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "lightning_attention",
    name_tokens={"h": "num_heads", "d": "head_dim"},
    absent={"flashinfer": "FlashInfer's linear attention has a delta rule"},
    domains={"slopes": "non-negative"},
)
