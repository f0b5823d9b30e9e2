"""One prefill and a batch of decodes in one call."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "pod",
    name_tokens={
        "h": "num_qo_heads",
        "kv": "num_kv_heads",
        "d": "head_dim",
        "ps": "page_size",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "head_dim": Figure(("head_dim",)),
    },
    name_words={"causal": ("is_causal", True)},
)
