"""The registry of op_types: what the generator must know without importing torch.

An op's functions (`make_inputs`, `oracle`, the ground-truth adapters) live in the
module named after it, which imports torch; the generator reads that module as text.
To add an op_type, write its module and add its OpSpec to OPS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OpSpec:
    """Describe one op_type to the loader, the resolver and the renderer.

    `name_tokens` maps a token of a definition's name (`kv8`) to the constant axis it
    stands for (or to several, of which a definition has one), `name_words` a word of it
    (`neox`) to a constant and the value that it states, `name_constants` a token to
    the constant that its number is. `constants` maps a constant that the interface does not carry to the
    op's convention for it, None where there is none. `absent` says why the op's module
    has no adapter for a provider.
    """

    op_type: str
    name_tokens: Mapping[str, str | tuple[str, ...]]
    constants: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    name_words: Mapping[str, tuple[str, Any]] = field(default_factory=dict)
    name_constants: Mapping[str, str] = field(default_factory=dict)


_ATTENTION_TOKENS = {
    "h": "num_qo_heads",
    "kv": "num_kv_heads",
    "d": "head_dim",
    "ps": "page_size",
}

RMSNORM = OpSpec(
    "rmsnorm",
    name_tokens={"h": "hidden_size"},
    constants={"eps": None, "unit_offset": False},
)
GEMM = OpSpec(
    "gemm",
    name_tokens={"n": "N", "k": "K"},
    absent={"flashinfer": "has no float16 GEMM"},
)
GQA_PAGED = OpSpec("gqa_paged", name_tokens=_ATTENTION_TOKENS)
MLA_PAGED = OpSpec(
    "mla_paged",
    name_tokens={
        "h": "num_qo_heads",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "ps": "page_size",
    },
)
GQA_RAGGED = OpSpec(
    "gqa_ragged",
    name_tokens={"h": "num_qo_heads", "kv": "num_kv_heads", "d": "head_dim"},
)
MLA_RAGGED = OpSpec(
    "mla_ragged", name_tokens={"h": "num_qo_heads", "qk": "qk_dim", "vo": "vo_dim"}
)
ROPE = OpSpec(
    "rope",
    name_tokens={"d": "head_size", "rd": "rotary_dim"},
    name_words={"neox": ("is_neox", True), "gptj": ("is_neox", False)},
    constants={"is_neox": True},
)
MAMBA_SSU = OpSpec(
    "mamba_ssu",
    name_tokens={"h": "nheads", "d": "head_dim", "s": "dstate", "ng": "ngroups"},
)
DSA_PAGED = OpSpec(
    "dsa_paged",
    name_tokens={
        "h": ("num_qo_heads", "num_index_heads"),
        "d": "index_head_dim",
        "ckv": "head_dim_ckv",
        "kpe": "head_dim_kpe",
        "topk": "topk",
        "ps": "page_size",
    },
)
GDN = OpSpec(
    "gdn", name_tokens={"qk": "num_q_heads", "v": "num_v_heads", "d": "head_size"}
)
SAMPLING = OpSpec("sampling", name_tokens={"v": "vocab_size"})
MOE = OpSpec(
    "moe",
    name_tokens={
        "e": ("num_local_experts", "num_experts"),
        "h": "hidden_size",
        "i": "intermediate_size",
    },
    name_constants={"topk": "top_k", "ng": "n_group", "kg": "topk_group"},
    constants={"top_k": None, "n_group": 1, "topk_group": 1},
)

OPS: Mapping[str, OpSpec] = {
    spec.op_type: spec
    for spec in (
        RMSNORM,
        GEMM,
        GQA_PAGED,
        MLA_PAGED,
        GQA_RAGGED,
        MLA_RAGGED,
        ROPE,
        MAMBA_SSU,
        DSA_PAGED,
        GDN,
        SAMPLING,
        MOE,
    )
}
