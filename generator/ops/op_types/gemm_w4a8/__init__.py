"""Products of float8 activations and packed 4-bit weights with scales of groups."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gemm_w4a8",
    name_tokens={"n": "N", "k": "K"},
    absent={
        "flashinfer": "FlashInfer 0.6.18 has no product of float8 and int4",
        "sglang": "SGLang's W4AFP8 kernel is of experts, and of the wheel sglang-kernel",
    },
)
