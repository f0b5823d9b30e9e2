"""RMS norms: plain, with residual addition, Gemma's with 1 + weight."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "rmsnorm",
    name_tokens={"h": "hidden_size"},
    name_words={"gemma": ("unit_offset", True), "1em5": ("eps", 1e-05)},
    constants={"eps": None, "unit_offset": False},
    figures={
        "hidden_size": Figure(
            (
                "hidden_size",
                "head_dim",
                "kv_lora_rank",
                "q_lora_rank",
                "mamba_head_dim",
            ),
            takes="any",
        )
    },
)
