"""Architectures of Hugging Face configs: shared traits and differences.

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
    """Facts of an architecture that its configs lack: the modules of layers, their form.

    `defaults` is the model_type whose defaults of transformers count, its own if empty.

    `mixer` is the kind of attention ("gqa", "mla", "dsa"), `linear` what LINEAR layers
    have in its place ("gdn", "kda", "mamba"). `pattern` are the layers of a config that
    lists none, repeated; empty where a window, if there is one, holds in all.

    `unit_offset`: norms multiply by 1 + weight. `scaled`: embeddings are multiplied by
    the root of their length. `head_norm`: queries and keys are normalised, each head
    alone ("head"), all heads together ("all"), or to a root mean square of 1 behind
    RoPE ("unit"); `optional_norm`: only where `use_qk_norm` says so. `sandwich`: norms
    stand behind attention and MLP as well; `post_norm`: behind them alone.
    `output_gate`: a sigmoid of the query projection's other half multiplies attention's
    output.

    `bias` are the projections ("qkv", "o") that the key `bias_key` gives a bias, and
    `always_bias` those that have one in any case; `mlp_bias`: MLPs have one where the key
    of that name says so. `heads`: their length is `head_dim`, else hidden size over heads,
    which must divide it ("divided") or not ("rounded"), or that in any case ("hidden").

    `gated`: MLPs multiply by an activated gate. `activation` stands for what the config
    says, `routing` is how a router weighs experts, empty where there are none: by
    "softmax", "sigmoid" with DeepSeek's groups and bias, or "llama4". `router` is how
    logits are made: in the model's dtype, "f32_out" from it, or "f32" throughout.
    `renormalised`: the weights of the chosen experts add up to 1, whatever the config
    says. `scores`: what routing by groups makes of logits, if the config is silent.
    `shared_gate`: a shared expert is multiplied by a sigmoid.

    `dense_first` is the number of layers before the first with experts, where neither
    list nor count says it. `has_window`: attention has the window that a config states.

    `sinks`: attention has a learned logit a head. `rope` is the style of RoPE, empty
    without one, `indexer_rope` that of an indexer. `turns_part`: RoPE turns as much of a
    head as the config says, else all of it. `turns` are the layers that have it:
    all, those that `no_rope_layers` lists ("listed"), or those with a window ("sliding").
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
    post_norm: bool = False
    output_gate: bool = False
    bias: str = ""
    bias_key: str = "attention_bias"
    always_bias: str = ""
    mlp_bias: bool = False
    heads: str = "divided"
    gated: bool = True
    activation: str = ""
    routing: str = ""
    router: str = ""
    renormalised: bool = False
    scores: str = "sigmoid"
    shared_gate: bool = False
    dense_first: int = 0
    has_window: bool = True
    sinks: bool = False
    rope: str = "neox"
    indexer_rope: str = "neox"
    turns_part: bool = False
    turns: str = ""


_BIASED = Architecture(bias="qkv o")
_LLAMA = replace(_BIASED, mlp_bias=True)
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
    _BIASED,
    turns="listed",
    pattern=(CHUNKED, CHUNKED, CHUNKED, FULL),
    head_norm="unit",
    optional_norm=True,
    routing="llama4",
    rope="gptj",
)

_QWEN2 = replace(_PLAIN, always_bias="qkv")
_QWEN3_NEXT = replace(
    _QWEN3,
    linear="gdn",
    pattern=(LINEAR, LINEAR, LINEAR, FULL),
    unit_offset=True,
    output_gate=True,
    turns_part=True,
)
_QWEN3_5_MOE = replace(
    _QWEN3_NEXT, routing="softmax", renormalised=True, shared_gate=True
)
_QWEN3_VL_MOE = replace(_QWEN3, routing="softmax", renormalised=True, has_window=False)
_QWEN2_5_VL = replace(_QWEN2, heads="hidden")
_GLM = replace(_PLAIN, bias="qkv", rope="gptj", turns_part=True)
_GLM_MOE = replace(
    _QWEN3,
    bias="qkv",
    optional_norm=True,
    routing="sigmoid",
    router="f32",
    heads="rounded",
    turns_part=True,
)
_OLMO2 = replace(_BIASED, head_norm="all", post_norm=True)

ARCHITECTURES: Mapping[str, Architecture] = {
    "llama": _LLAMA,
    "mistral": _PLAIN,
    "ministral3": _PLAIN,
    "mixtral": replace(_PLAIN, routing="softmax", renormalised=True),
    "phi3": replace(_PLAIN, turns_part=True),
    "ministral": _PLAIN,
    # its softmax stands before the choice among groups, and no bias corrects it
    "mistral4": replace(_DEEPSEEK, router="", scores="unbiased_softmax"),
    "qwen2": _QWEN2,
    "qwen2_moe": replace(
        _PLAIN, bias="qkv", bias_key="qkv_bias", routing="softmax", shared_gate=True
    ),
    "qwen2_5_vl": replace(_QWEN2_5_VL, defaults="qwen2_5_vl_text"),
    "qwen2_5_vl_text": _QWEN2_5_VL,
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, routing="softmax"),
    "qwen3_next": replace(_QWEN3_NEXT, routing="softmax", shared_gate=True),
    "qwen3_5": replace(_QWEN3_NEXT, defaults="qwen3_5_text"),
    "qwen3_5_text": _QWEN3_NEXT,
    "qwen3_5_moe": replace(_QWEN3_5_MOE, defaults="qwen3_5_moe_text"),
    "qwen3_5_moe_text": _QWEN3_5_MOE,
    "qwen3_vl": replace(_QWEN3, defaults="qwen3_vl_text"),
    "qwen3_vl_text": _QWEN3,
    "qwen3_vl_moe": replace(_QWEN3_VL_MOE, defaults="qwen3_vl_moe_text"),
    "qwen3_vl_moe_text": _QWEN3_VL_MOE,
    "glm": _GLM,
    "glm4": replace(_GLM, sandwich=True),
    "glm4_moe": _GLM_MOE,
    "glm4_moe_lite": replace(_DEEPSEEK, router="f32", dense_first=1),
    # GLM-5 turns neighbours in its indexer as well
    "glm_moe_dsa": replace(_DEEPSEEK, mixer="dsa", router="f32", indexer_rope="gptj"),
    "gemma": replace(_GEMMA, pattern=(), sandwich=False),
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
    "deepseek_v2": replace(
        _DEEPSEEK, router="f32", scores="unbiased_softmax", mlp_bias=True
    ),
    "deepseek_v3": _DEEPSEEK,
    # multi-head latent attention without RoPE, between layers of delta attention
    "kimi_linear": replace(
        _DEEPSEEK,
        linear="kda",
        pattern=(LINEAR, LINEAR, LINEAR, FULL),
        router="f32",
        rope="",
        dense_first=1,
    ),
    "youtu": replace(_DEEPSEEK, routing="", router=""),
    "dots1": replace(
        _GLM_MOE, optional_norm=False, bias="qkv o", heads="divided", turns_part=False
    ),
    "kimi_k2": replace(_DEEPSEEK, defaults="deepseek_v3"),
    "deepseek_v32": replace(_DEEPSEEK, mixer="dsa"),
    "minimax_m2": replace(
        _PLAIN,
        head_norm="all",
        optional_norm=True,
        routing="sigmoid",
        router="f32",
        renormalised=True,
        turns_part=True,
    ),
    "llama4": replace(_LLAMA4, defaults="llama4_text"),
    "llama4_text": _LLAMA4,
    "nemotron_h": Architecture(
        linear="mamba",
        mlp_bias=True,
        gated=False,
        routing="sigmoid",
        router="f32_out",
        rope="",
    ),
    "granite": _LLAMA,
    "granitemoe": replace(_BIASED, routing="softmax", renormalised=True),
    "olmo2": _OLMO2,
    "olmo3": replace(_OLMO2, pattern=(SLIDING, SLIDING, SLIDING, FULL)),
    "olmoe": replace(_BIASED, head_norm="all", routing="softmax"),
    "exaone4": replace(
        _PLAIN,
        head_norm="head",
        post_norm=True,
        pattern=(SLIDING, SLIDING, SLIDING, FULL),
        turns="sliding",
    ),
    "exaone_moe": replace(
        _PLAIN,
        head_norm="head",
        pattern=(SLIDING, SLIDING, SLIDING, FULL),
        turns="sliding",
        routing="sigmoid",
        router="f32",
    ),
    "hy_v3": replace(
        _QWEN3,
        routing="sigmoid",
        router="f32",
        renormalised=True,
        mlp_bias=True,
        dense_first=1,
    ),
    "ernie4_5": replace(_PLAIN, bias="qkv o", bias_key="use_bias", rope="gptj"),
    # its norms of queries and keys stand behind RoPE
    "hunyuan_v1_dense": _QWEN3,
    "seed_oss": replace(_PLAIN, bias="qkv", mlp_bias=True),
    "smollm3": replace(_LLAMA, turns="listed"),
    "arcee": replace(_LLAMA, gated=False),
    "cwm": replace(_PLAIN, mlp_bias=True, pattern=(FULL, SLIDING, SLIDING, SLIDING)),
}

REFUSED: Mapping[str, str] = {
    "deepseek_v4": "attention over compressed keys, hyper-connections and hash routing",
    "qwen4_exp": "hyper-connections and attention of chosen blocks",
    "glm5_next": "hyper-connections, Kimi's delta attention and pooled index keys",
    "minimax": "lightning attention",
    "minimax_m3_vl": "attention over blocks that an indexer chooses",
    "gemma3n": "alternating updates, embeddings of layers and shared keys and values",
    "gemma4": "heads of another length in layers without a window, and norms of values",
    "mllama": "cross-attention to an image",
    "granitemoehybrid": "Mamba 2 and experts in one layer",
    "falcon_h1": "Mamba 2 beside attention in one layer",
    "bamba": "Mamba 2 and an MLP in one layer",
    "jamba": "Mamba 1",
    "olmo_hybrid": "delta nets with values longer than keys",
    "lfm2": "gated short convolutions",
    "lfm2_moe": "gated short convolutions",
    "mimo_v2_flash": "values shorter than keys, and other heads in layers with a window",
    "longcat_flash": "two attentions in a layer, and experts that compute nothing",
    "step3p7": "other heads in layers with a window, and gates of heads",
    "hunyuan_v1_moe": "experts whose counts are lists of layers",
    "ernie4_5_moe": "routing by a softmax that a bias corrects",
    "phimoe": "layer norms with a bias, and routing by sparse mixing",
    "cohere": "layer norms, and an MLP beside attention",
    "cohere2": "layer norms, and an MLP beside attention",
    "starcoder2": "layer norms with a bias",
    "gpt_neox": "layer norms with a bias, and an MLP beside attention",
    "falcon": "layer norms with a bias, and an MLP beside attention",
    "apertus": "the activation xIELU",
    "gpt2": "layer norms with a bias, and learned positions",
    "opt": "layer norms with a bias, and learned positions",
    "bloom": "layer norms with a bias, and ALiBi in all layers",
    "mpt": "layer norms, and ALiBi in all layers",
    "mamba": "Mamba 1",
    "mamba2": "Mamba 2 without attention",
    "bert": "an encoder: attention that sees later tokens, and learned positions",
    "modernbert": "an encoder: attention that sees later tokens",
    "t5": "an encoder and a decoder, and relative biases",
    "whisper": "an encoder and a decoder of speech",
    "vit": "an encoder of images",
    "siglip": "an encoder of images and texts",
}
"""Families that are known and refused, by the modules that the map does not place."""
