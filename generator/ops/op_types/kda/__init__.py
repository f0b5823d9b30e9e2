"""Kimi's delta attention: decode, prefill."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "kda",
    name_tokens={"h": "num_heads", "d": "head_dim"},
    figures={
        "num_heads": Figure(("linear_num_heads",), "tp"),
        "head_dim": Figure(("linear_head_dim",)),
    },
    absent={
        "flashinfer": "FlashInfer's recurrent_kda is for CuTe DSL, on SM100 and later"
    },
)
