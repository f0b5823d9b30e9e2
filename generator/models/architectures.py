"""What the architectures of Hugging Face configs have in common and do differently.

Facts of transformers 5.17 and SGLang 0.5.23, by `model_type`. What a config says itself
(biases, experts, windows) is read there, not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
LINEAR, NONE = "linear_attention", ""
"""What mixes tokens in a layer, as `layer_types` calls it; NONE for an MLP alone."""
MAMBA = "mamba"
"""What LINEAR layers may have."""


@dataclass(frozen=True)
class Architecture:
    """Say what a config does not: which modules its layers have, and in what form.

    `defaults` is the model_type whose defaults of transformers count, its own if empty.

    `mixer` is the kind of attention ("gqa", "mla", "dsa"), `linear` what LINEAR layers
    have in its place ("gdn", "mamba"). `pattern` are the layers of a config that lists
    none, repeated; empty where a window, if there is one, holds in all.

    `unit_offset`: norms multiply by 1 + weight. `scaled`: embeddings are multiplied by
    the root of their length. `head_norm`: queries and keys are normalised, each head
    alone ("head"), all heads together ("all"), or to a root mean square of 1 behind RoPE
    ("unit"); `optional_norm`: only where `use_qk_norm` says so. `sandwich`: norms stand
    behind attention and MLP as well. `output_gate`: a sigmoid of the query projection's
    other half multiplies attention's output.

    `bias` are the projections ("qkv", "o") that `attention_bias` gives a bias, and
    `always_bias` those that have one in any case.

    `gated`: MLPs multiply by an activated gate. `activation` stands for what the config
    says, `routing` is how a router weighs experts, empty where there are none: by
    "softmax", "sigmoid" with DeepSeek's groups and bias, or "llama4". `router` is how
    logits are made: in the model's dtype, "f32_out" from it, or "f32" throughout.
    `renormalised`: the weights of the chosen experts add up to 1, whatever the config
    says. `shared_gate`: a shared expert is multiplied by a sigmoid.

    `sinks`: attention has a learned logit a head. `rope` is the style of RoPE, empty
    without one.
    """

    defaults: str = ""
    mixer: str = "gqa"
    linear: str = ""
    pattern: tuple[str, ...] = ()
    unit_offset: bool = False
    scaled: bool = False
    head_norm: str = ""
    optional_norm: bool = False
    sandwich: bool = False
    output_gate: bool = False
    bias: str = ""
    always_bias: str = ""
    gated: bool = True
    activation: str = ""
    routing: str = ""
    router: str = ""
    renormalised: bool = False
    shared_gate: bool = False
    sinks: bool = False
    rope: str = "neox"


_LLAMA = Architecture(bias="qkv o")
_PLAIN = Architecture()
_QWEN3 = Architecture(head_norm="head", bias="qkv o")
_GEMMA = Architecture(
    pattern=(SLIDING, FULL),
    unit_offset=True,
    scaled=True,
    sandwich=True,
    bias="qkv o",
)
_GEMMA3 = replace(_GEMMA, head_norm="head", pattern=(*[SLIDING] * 5, FULL))
# RoPE that turns a dimension with its neighbour, not with the one half a head away
_DEEPSEEK = Architecture(
    mixer="mla", routing="sigmoid", router="f32_out", bias="qkv o", rope="gptj"
)
_LLAMA4 = replace(
    _LLAMA,
    pattern=(CHUNKED, CHUNKED, CHUNKED, FULL),
    head_norm="unit",
    optional_norm=True,
    routing="llama4",
    rope="gptj",
)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "mistral": _PLAIN,
    "ministral3": _PLAIN,
    "mixtral": replace(_PLAIN, routing="softmax", renormalised=True),
    "phi3": _PLAIN,
    "qwen2": replace(_PLAIN, always_bias="qkv"),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, routing="softmax"),
    "glm4_moe": replace(
        _QWEN3, bias="qkv", optional_norm=True, routing="sigmoid", router="f32"
    ),
    "qwen3_next": replace(
        _QWEN3,
        linear="gdn",
        pattern=(LINEAR, LINEAR, LINEAR, FULL),
        unit_offset=True,
        output_gate=True,
        routing="softmax",
        shared_gate=True,
    ),
    "gemma2": _GEMMA,
    "gemma3": replace(_GEMMA3, defaults="gemma3_text"),
    "gemma3_text": _GEMMA3,
    "gpt_oss": Architecture(
        pattern=(SLIDING, FULL),
        sinks=True,
        bias="qkv o",
        activation="swiglu_oai",
        routing="softmax",
        renormalised=True,
    ),
    "deepseek_v3": _DEEPSEEK,
    "kimi_k2": replace(_DEEPSEEK, defaults="deepseek_v3"),
    "deepseek_v32": replace(_DEEPSEEK, mixer="dsa"),
    "minimax_m2": replace(
        _PLAIN,
        head_norm="all",
        optional_norm=True,
        routing="sigmoid",
        router="f32",
        renormalised=True,
    ),
    "llama4": replace(_LLAMA4, defaults="llama4_text"),
    "llama4_text": _LLAMA4,
    "nemotron_h": Architecture(
        linear="mamba",
        bias="qkv o",
        gated=False,
        routing="sigmoid",
        router="f32_out",
        rope="",
    ),
}
