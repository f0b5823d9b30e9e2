"""What the architectures of Hugging Face configs have in common and do differently.

Facts of transformers 5.17 and SGLang 0.5.23, by `model_type`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Architecture:
    """Say what a config does not: which modules its layers have, and in what form.

    `unit_offset`: norms multiply by 1 + weight. `scaled`: embeddings are multiplied by
    the root of their length. `head_norm`: queries and keys are normalised, each head
    alone ("head") or all heads together ("all"). `sandwich`: norms stand behind
    attention and MLP as well. `activation` is the start of a definition's name, empty
    where the MLP has no gate. `routing` is how a router weighs experts. `sinks`:
    attention has a learned logit a head. `mixer` stands in each layer or, where the
    config lists layers, in some. `fused`: query, key and value are one product, and so
    are gate and up. `rope` is the start of a definition's name, empty without.
    """

    unit_offset: bool = False
    scaled: bool = False
    head_norm: str = ""
    sandwich: bool = False
    activation: str = "silu_and_mul"
    routing: str = "renorm"
    sinks: bool = False
    mixer: str = "gqa"
    fused: bool = True
    rope: str = "rope_with_cos_sin_cache_neox_style"


# RoPE that turns a dimension with its neighbour, not with the one half a head away
_NEIGHBOURS = "rope_with_cos_sin_cache_gptj_style"
_LLAMA = Architecture()
_QWEN3 = Architecture(head_norm="head")
_GEMMA = Architecture(
    unit_offset=True,
    scaled=True,
    sandwich=True,
    activation="gelu_tanh_and_mul",
    fused=False,
)
_DEEPSEEK = Architecture(mixer="mla", routing="ds_routing", rope=_NEIGHBOURS)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "ministral3": _LLAMA,
    "mixtral": _LLAMA,
    "phi3": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "glm4_moe": replace(_QWEN3, routing="ds_routing"),
    "qwen3_next": replace(_QWEN3, unit_offset=True, mixer="gdn"),
    "gemma2": _GEMMA,
    "gemma3": replace(_GEMMA, head_norm="head"),
    "gemma3_text": replace(_GEMMA, head_norm="head"),
    "gpt_oss": Architecture(sinks=True, activation="swiglu_oai", routing="softmax"),
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": _DEEPSEEK,
    "deepseek_v32": replace(_DEEPSEEK, mixer="dsa"),
    "minimax_m2": replace(_LLAMA, head_norm="all", routing="ds_routing"),
    "llama4": replace(_LLAMA, routing="llama4", rope=_NEIGHBOURS),
    "llama4_text": replace(_LLAMA, routing="llama4", rope=_NEIGHBOURS),
    "nemotron_h": Architecture(mixer="mamba", activation="", rope=""),
}
