"""Families whose decoder reads what an encoder makes: plain data, without torch."""

from __future__ import annotations

from generator.parity.recipe import Family, Stage

# Whisper: convolved speech, LayerNorm, attention to all of it, and to what it became
_D, _F = "{d_model}", "{encoder_ffn_dim}"
_HEADS = "h{encoder_attention_heads}_kv{encoder_attention_heads}_d{head_dim}"
_WHOLE = f"=gqa_ragged_prefill_noncausal_{_HEADS}"
_SQUARE = f"=gemm_bf16_n{_D}_k{_D}"
_LAYER_NORM = f"=layernorm_eps_1em5_h{_D}"


def _projected(name: str, at: str, reads: str, keys: str) -> tuple[Stage, ...]:
    """Return the products of queries, keys and values."""
    return tuple(
        Stage(
            f"{name}_{part}",
            "linear",
            source,
            f"{name}_{part}",
            f"{at}.{part}_proj",
            _SQUARE,
        )
        for part, source in (("q", reads), ("k", keys), ("v", keys))
    )


def _feed(prefix: str, residual: str) -> tuple[Stage, ...]:
    """Return the stages of an MLP without a gate."""
    return (
        Stage(
            f"{prefix}_norm2",
            "layer_norm",
            residual,
            "y",
            "final_layer_norm",
            _LAYER_NORM,
        ),
        Stage(f"{prefix}_fc1", "linear", "y", "u", "fc1", f"=gemm_bf16_n{_F}_k{_D}"),
        Stage(f"{prefix}_act", "plain_activation", "u", "g", "", "", "fc2<"),
        Stage(f"{prefix}_fc2", "linear", "g", "d", "fc2", f"=gemm_bf16_n{_D}_k{_F}"),
        Stage(f"{prefix}_output", "add", f"{residual} d", "out", truth="."),
    )


_SPOKEN = (
    Stage("enc_norm1", "layer_norm", "h", "x", "self_attn_layer_norm", _LAYER_NORM),
    *_projected("enc", "self_attn", "x", "x"),
    Stage(
        "enc_attention",
        "whole_attention",
        "enc_q enc_k enc_v",
        "a",
        "self_attn",
        _WHOLE,
        "attention",
    ),
    Stage("enc_o", "linear", "a", "o", "self_attn.out_proj", _SQUARE),
    Stage("enc_residual", "add", "h o", "r", truth="final_layer_norm<"),
    *_feed("enc", "r"),
)
_WRITTEN = (
    Stage("norm1", "layer_norm", "h", "x", "self_attn_layer_norm", _LAYER_NORM),
    *_projected("self", "self_attn", "x", "x"),
    Stage(
        "attention", "attention", "self_q self_k self_v", "a", "attention", f"={_HEADS}"
    ),
    Stage("o", "linear", "a", "o", "self_attn.out_proj", _SQUARE),
    Stage("residual", "add", "h o", "r", truth="encoder_attn_layer_norm<"),
    Stage("cross_norm", "layer_norm", "r", "c", "encoder_attn_layer_norm", _LAYER_NORM),
    *_projected("cross", "encoder_attn", "c", "memory"),
    Stage(
        "cross_attention",
        "whole_attention",
        "cross_q cross_k cross_v",
        "ca",
        "encoder_attn",
        _WHOLE,
        "attention2",
    ),
    Stage("cross_o", "linear", "ca", "co", "encoder_attn.out_proj", _SQUARE),
    Stage("cross_residual", "add", "r co", "s", truth="final_layer_norm<"),
    *_feed("dec", "s"),
)
_ENCODER = Family(
    "",
    {"": _SPOKEN},
    {},
    {},
    base="model.encoder",
    embed=Stage(
        "enc_embed",
        "speech_embedding",
        "features",
        "h",
        "model.encoder.conv1 model.encoder.conv2 model.encoder.embed_positions",
        "",
        "model.encoder.layers.0<",
    ),
    final=(
        Stage(
            "enc_final",
            "layer_norm",
            "h",
            "memory",
            "model.encoder.layer_norm",
            _LAYER_NORM,
        ),
    ),
)
WHISPER = Family(
    "whisper-large-v3",
    {"": _WRITTEN},
    {},
    {
        "d_model": 64,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 96,
        "decoder_ffn_dim": 96,
        "num_mel_bins": 16,
        "max_source_positions": 40,
        "max_target_positions": 256,
        "vocab_size": 320,
    },
    {
        # an embedding of padding gets no gradient
        "pad_token_id": None,
        "bos_token_id": 1,
        "eos_token_id": 1,
        "decoder_start_token_id": 1,
        "suppress_tokens": None,
        "begin_suppress_tokens": None,
    },
    real={"encoder_layers": 1, "decoder_layers": 1},
    published={
        "model_type": "whisper",
        "d_model": 1280,
        "head_dim": 64,
        "encoder_layers": 32,
        "decoder_layers": 32,
        "encoder_attention_heads": 20,
        "decoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "decoder_ffn_dim": 5120,
        "num_mel_bins": 128,
        "max_source_positions": 1500,
        "max_target_positions": 448,
        "vocab_size": 51866,
    },
    auto="AutoModelForSpeechSeq2Seq",
    base="model.decoder",
    senses="speech",
    tower=_ENCODER,
    embed=Stage(
        "embed",
        "embedding",
        "tokens",
        "t",
        "model.decoder.embed_tokens",
        f"=embedding_v{{vocab_size}}_h{_D}",
    ),
    entry=(
        Stage(
            "places",
            "add_places",
            "t",
            "h",
            "model.decoder.embed_positions",
            "",
            "model.decoder.layers.0<",
        ),
    ),
    final=(
        Stage(
            "final_norm",
            "layer_norm",
            "h",
            "x",
            "model.decoder.layer_norm",
            _LAYER_NORM,
        ),
        Stage(
            "lm_head",
            "linear",
            "x",
            "logits",
            "proj_out",
            f"=gemm_bf16_n{{vocab_size}}_k{_D}",
        ),
    ),
)

# T5: a bias of relative positions, a source text with padding, unscaled attention
_INNER = "{inner_size}"
_T5_HEADS = "h{num_heads}_kv{num_heads}_d{d_kv}"
_T5_IN, _T5_OUT = f"=gemm_bf16_n{_INNER}_k{_D}", f"=gemm_bf16_n{_D}_k{_INNER}"
_RMS = f"=rmsnorm_h{_D}"


def _t5_attention(prefix: str, at: str, reads: str, keys: str) -> tuple[Stage, ...]:
    return tuple(
        Stage(
            f"{prefix}_{part}",
            "linear",
            source,
            f"{prefix}_{part}",
            f"{at}.{part}",
            _T5_IN,
        )
        for part, source in (("q", reads), ("k", keys), ("v", keys))
    )


def _t5_feed(prefix: str, index: int, residual: str) -> tuple[Stage, ...]:
    at, dense = f"layer.{index}", f"layer.{index}.DenseReluDense"
    product = f"=gemm_bf16_n{{d_ff}}_k{_D}"
    return (
        Stage(f"{prefix}_norm2", "norm", residual, "y", f"{at}.layer_norm", _RMS),
        Stage(f"{prefix}_gate", "linear", "y", "gate", f"{dense}.wi_0", product),
        Stage(f"{prefix}_up", "linear", "y", "up", f"{dense}.wi_1", product),
        Stage(
            f"{prefix}_act",
            "activation",
            "gate up",
            "g",
            dense,
            "=gelu_tanh_and_mul_i{d_ff}",
            f"{dense}.wo<",
        ),
        Stage(
            f"{prefix}_down",
            "linear",
            "g",
            "d",
            f"{dense}.wo",
            f"=gemm_bf16_n{_D}_k{{d_ff}}",
        ),
        Stage(f"{prefix}_output", "add", f"{residual} d", "out", truth="."),
    )


def _t5_self(prefix: str, after: str) -> tuple[Stage, ...]:
    at = "layer.0.SelfAttention"
    return (
        Stage(f"{prefix}_norm1", "norm", "h", "x", "layer.0.layer_norm", _RMS),
        *_t5_attention(prefix, at, "x", "x"),
        Stage(
            f"{prefix}_attention",
            "biased_attention",
            f"{prefix}_q {prefix}_k {prefix}_v",
            "a",
            at,
            "",
            "attention",
        ),
        Stage(f"{prefix}_o", "linear", "a", "o", f"{at}.o", _T5_OUT),
        Stage(f"{prefix}_residual", "add", "h o", "r", truth=f"{after}.layer_norm<"),
    )


_CROSS = "layer.1.EncDecAttention"
_T5_FIGURES = {
    "model_type": "t5",
    "d_model": 768,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 12,
    "num_decoder_layers": 12,
    "num_heads": 12,
    "inner_size": 768,
    "vocab_size": 32128,
    "feed_forward_proj": "gated-gelu",
    "tie_word_embeddings": False,
}
T5 = Family(
    "t5-v1.1-base",
    {
        "": (
            *_t5_self("self", "layer.1"),
            Stage("cross_norm", "norm", "r", "c", "layer.1.layer_norm", _RMS),
            *_t5_attention("cross", _CROSS, "c", "memory"),
            Stage(
                "cross_attention",
                "whole_attention",
                "cross_q cross_k cross_v",
                "ca",
                _CROSS,
                f"=gqa_ragged_prefill_noncausal_{_T5_HEADS}",
                "attention2",
            ),
            Stage("cross_o", "linear", "ca", "co", f"{_CROSS}.o", _T5_OUT),
            Stage("cross_residual", "add", "r co", "s", truth="layer.2.layer_norm<"),
            *_t5_feed("dec", 2, "s"),
        )
    },
    {},
    {
        "d_model": 64,
        "d_kv": 16,
        "d_ff": 96,
        "num_layers": 2,
        "num_decoder_layers": 3,
        "num_heads": 4,
        "vocab_size": 320,
        "relative_attention_num_buckets": 16,
        "relative_attention_max_distance": 48,
    },
    {"decoder_start_token_id": 0, "max_position_embeddings": 256},
    real={"num_layers": 1, "num_decoder_layers": 1},
    published=_T5_FIGURES,
    auto="AutoModelForSeq2SeqLM",
    base="decoder",
    layers="block",
    senses="source",
    tower=Family(
        "",
        {"": (*_t5_self("enc", "layer.1"), *_t5_feed("enc", 1, "r"))},
        {},
        {},
        base="encoder",
        layers="block",
        embed=Stage(
            "enc_embed",
            "embedding",
            "source",
            "h",
            "encoder.embed_tokens",
            f"=embedding_v{{vocab_size}}_h{_D}",
        ),
        final=(
            Stage("enc_final", "norm", "h", "memory", "encoder.final_layer_norm", _RMS),
        ),
    ),
    embed=Stage(
        "embed",
        "embedding",
        "tokens",
        "h",
        "decoder.embed_tokens",
        f"=embedding_v{{vocab_size}}_h{_D}",
    ),
    final=(
        Stage("final_norm", "norm", "h", "x", "decoder.final_layer_norm", _RMS),
        Stage(
            "lm_head",
            "linear",
            "x",
            "logits",
            "lm_head",
            f"=gemm_bf16_n{{vocab_size}}_k{_D}",
        ),
    ),
)
