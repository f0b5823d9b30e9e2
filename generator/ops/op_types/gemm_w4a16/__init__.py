"""Products of 16-bit activations and packed 4-bit weights with scales of groups."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_w4a16",
    name_tokens={"n": "N", "k": "K"},
    absent={"flashinfer": "FlashInfer has no product of packed int4 weights"},
)
