"""Of which sizes a model is compared: small ones, by name, or its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.models.architectures import Architecture
from generator.models.config import Config, load
from generator.parity.recipe import Family

SIZES: Mapping[str, Mapping[str, Any]] = {
    "tiny": {},
    "gqa": {"num_attention_heads": 16, "num_key_value_heads": 1},
    "wide": {"hidden_size": 256, "intermediate_size": 768},
    "medium": {"hidden_size": 192, "num_hidden_layers": 6, "head_dim": 32},
    "deep": {"num_hidden_layers": 24},
}
"""Figures that replace those of a tiny model."""
SETS: Mapping[str, tuple[str, ...]] = {
    "quick": ("tiny",),
    "full": ("tiny", "gqa", "wide", "medium"),
    "stress": tuple(SIZES),
}
"""The geometries of a set."""
HEADS = (
    "head_dim",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "mamba_head_dim",
    "ssm_state_size",
)
"""Lengths of heads and states: `wide` has the model's own, which kernels are made for."""

_BY_LAYER = ("layer_types", "mlp_layer_types", "indexer_types", "no_rope_layers")
"""Lists with an entry for each layer: repeated where a model has more layers."""

TOKENS = 75
"""Tokens of a comparison: more than one page, and than the window of a tiny model."""
REAL, WHOLE = "real", "whole"
_VOCABULARY, _POSITIONS = 8192, 4096
_LONGEST_WINDOW = 1024
_LARGE_EXPERT, _FEW = 1 << 22, 20
# of a config, what transformers' text model does without
_DROPPED = ("quantization_config", "text_config", "vision_config", "audio_config")


def tokens(figures: Mapping[str, Any]) -> int:
    """Return how many tokens to compare: more than a window, where that is possible.

    Each may go to other experts, of which large ones are read for a second each.
    """
    hidden = figures.get("hidden_size", 0)
    if figures.get("moe_intermediate_size", 0) * hidden > _LARGE_EXPERT:
        return _FEW
    window = figures.get("sliding_window") or 0
    return max(TOKENS, window + 32) if window <= _LONGEST_WINDOW else TOKENS


def figures_of(
    config: Config, family: Family, geometry: str, *, is_given: bool = False
) -> dict[str, Any]:
    """Return the config for transformers: small, as it is, or one layer of each type.

    The vocabulary is whole where weights are given, since theirs is.
    """
    more = {**family.facts, **family.others.get(config.name, {})}
    # of its family, whatever it calls itself
    kind = family.facts.get("model_type") or config_of(family).get("model_type")
    figures = {**config.figures, **more, "model_type": kind}
    if geometry == WHOLE:
        figures["max_position_embeddings"] = _POSITIONS
    elif geometry != REAL:
        figures |= _small(figures, family, geometry)
    else:
        types = [kind for kind in family.mixers if kind]
        figures["num_hidden_layers"] = max(len(types), 1)
        figures["max_position_embeddings"] = _POSITIONS
        if not is_given:
            figures["vocab_size"] = min(config.size("vocab_size"), _VOCABULARY)
        if types:
            figures["layer_types"] = types
        figures |= family.real
    return {key: value for key, value in figures.items() if key not in _DROPPED}


def config_of(family: Family) -> Config:
    """Return the config of the model that stands for a family."""
    if family.published:
        return Config(family.model, family.published, Architecture())
    return load(family.model)


def whole_config(family: Family, figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the config that transformers needs: around the figures of the text."""
    if not family.around:
        return figures
    return {**family.around, "text_config": dict(figures)}


def _small(
    figures: Mapping[str, Any], family: Family, geometry: str
) -> Mapping[str, Any]:
    """Return the figures of a small model, by the name of its geometry."""
    small = {**family.tiny, **SIZES[geometry]}
    if family.tiny.get("head_dim", 0) is None:
        # the model makes it of other figures
        small["head_dim"] = None
    if geometry == "wide" and small.get("head_dim"):
        small |= {key: figures[key] for key in HEADS if key in figures}
    if "kv_lora_rank" in small:
        # keys and values of every head are made of one latent
        small["num_key_value_heads"] = small["num_attention_heads"]
        small["head_dim"] = small["qk_rope_head_dim"]
    count = small.get("num_hidden_layers", 0)
    for key in _BY_LAYER:
        if kinds := small.get(key):
            small[key] = [kinds[at % len(kinds)] for at in range(count)]
    return small
