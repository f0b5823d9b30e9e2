"""Moving heads: q, k and v of a fused row, heads before tokens and back, keys of MLA."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "head_layout",
    name_tokens={
        "h": ("num_qo_heads", "num_heads"),
        "kv": "num_kv_heads",
        "d": "head_dim",
        "nope": "nope_dim",
        "rope": "rope_dim",
    },
    figures={
        "num_qo_heads": Figure(("num_attention_heads",), "tp"),
        "num_kv_heads": Figure(("num_key_value_heads",), "tp"),
        "num_heads": Figure(("num_attention_heads",), "tp"),
        "nope_dim": Figure(("qk_nope_head_dim",)),
        "rope_dim": Figure(("qk_rope_head_dim",)),
    },
    kernels={"concat_mla_k": "flashinfer.concat_ops.concat_mla_k"},
    absent={"sglang": "SGLang calls PyTorch to split and to transpose"},
)
