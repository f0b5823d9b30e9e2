"""The layers of a model: what mixes tokens in each, and what stands behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generator.models.architectures import (
    CHUNKED,
    FULL,
    LINEAR,
    MAMBA,
    NONE,
    SLIDING,
)
from generator.models.config import Config
from generator.problems.messages import show

DENSE, MOE = "dense", "moe"
_MIXERS = {
    FULL: FULL,
    SLIDING: SLIDING,
    CHUNKED: CHUNKED,
    LINEAR: LINEAR,
}
_SPARSE = {"deepseek_sparse_attention": FULL}
_BLOCKS = {
    "*": (FULL, NONE),
    "M": (LINEAR, NONE),
    "-": (NONE, DENSE),
    "E": (NONE, MOE),
    "full_attention": (FULL, NONE),
    "attention": (FULL, NONE),
    "linear_attention": (LINEAR, NONE),
    "mamba": (LINEAR, NONE),
    "mlp": (NONE, DENSE),
    "moe": (NONE, MOE),
}
"""Nemotron-H's blocks: a letter of its pattern or a word of its list → mixer and MLP."""
_DEFAULT_BLOCKS = ["linear_attention", "moe", "full_attention", "mlp"]
"""What transformers makes of a file that has neither."""
_MOST = 1024
"""No model has as many layers."""
_MADE_LISTS = (
    "sliding_window_pattern",
    "full_attention_interval",
    "use_sliding_window",
    "max_window_layers",
)
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")


@dataclass(frozen=True)
class Layer:
    """One layer: what mixes tokens, which MLP it has, whether attention turns by RoPE."""

    mixer: str
    feed: str
    has_rope: bool = True


def layers(config: Config) -> tuple[Layer, ...]:
    """Return the layers in order. Raises Failure for a list or a count that is none."""
    if config.architecture.linear == MAMBA:
        return _blocks(config)
    count = config.size("num_hidden_layers")
    if count > _MOST:
        config.refuse("num_hidden_layers", f"is {count}, more than {_MOST}")
    mixers = _mixers(config, count)
    is_moe = _experts_at(config)
    feeds = _listed_feeds(config, count)
    turns = _turns(config, mixers)
    return tuple(
        Layer(mixers[i], feeds[i] if feeds else (MOE if is_moe(i) else DENSE), turns[i])
        for i in range(count)
    )


def places(of: tuple[Layer, ...], *kinds: str) -> frozenset[int]:
    """Return the numbers of the layers that have one of the mixers or MLPs."""
    return frozenset(
        i for i, layer in enumerate(of) if layer.mixer in kinds or layer.feed in kinds
    )


def experts(config: Config) -> int:
    """Return how many experts a layer with experts has, 0 where no layer has any."""
    return config.count(*_EXPERTS) if config.architecture.routing else 0


def _blocks(config: Config) -> tuple[Layer, ...]:
    stated = config.stated("hybrid_override_pattern")
    # transformers prefers the list
    pattern = config.stated("layers_block_type", "layer_types") or stated
    count = config.get("num_hidden_layers")
    if pattern is None and count in (None, len(_DEFAULT_BLOCKS)):
        pattern = _DEFAULT_BLOCKS
    if not isinstance(pattern, (str, list)) or not 0 < len(pattern) <= _MOST:
        why = "is missing, and with it which layers have what"
        config.refuse("hybrid_override_pattern", why)
    for block in pattern:
        if not isinstance(block, str) or block not in _BLOCKS:
            why = f"has {show(block)}: known are {', '.join(_BLOCKS)}"
            config.refuse("hybrid_override_pattern or layers_block_type", why)
    whole = SLIDING if config.count("sliding_window") else FULL
    return tuple(
        Layer(whole if mixer == FULL else mixer, feed)
        for mixer, feed in map(_BLOCKS.__getitem__, pattern)
    )


def _mixers(config: Config, count: int) -> list[str]:
    stated = config.stated("layer_types")
    if stated:
        if not isinstance(stated, list) or len(stated) < count:
            config.refuse("layer_types", f"is no list of {count} layers")
        known = _SPARSE if config.architecture.mixer == "dsa" else _MIXERS
        for kind in stated:
            if not isinstance(kind, str) or kind not in known:
                why = f"has {show(kind)}: known are {', '.join(known)}"
                config.refuse("layer_types", why)
        # the list is what these keys make where there is none
        config.stated(*_MADE_LISTS, "sliding_window")
        return [known[kind] for kind in stated[:count]]
    pattern = config.architecture.pattern
    if CHUNKED in pattern:
        # Llama 4: attention is within chunks where RoPE turns
        return [CHUNKED if turns else FULL for turns in _rope_layers(config, count)]
    if pattern:
        pattern = _of_length(config, pattern)
        return [pattern[i % len(pattern)] for i in range(count)]
    # other architectures' code knows no window, whatever a file says
    if not config.architecture.has_window or "sliding_window" not in config.defaults:
        return [FULL] * count
    if config.stated("use_sliding_window"):
        config.size("sliding_window")
    windowed = config.flag("use_sliding_window", default=True)
    if not config.count("sliding_window") or not windowed:
        # without a window it is known to change nothing
        config.get("max_window_layers")
        return [FULL] * count
    first = config.count("max_window_layers")
    return [SLIDING if i >= first else FULL for i in range(count)]


def _of_length(config: Config, pattern: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pattern with as many layers as the config says, the last of them full."""
    length = config.stated(
        "sliding_window_pattern", "_sliding_window_pattern", "full_attention_interval"
    )
    if length is None:
        return pattern
    if type(length) is not int or not 0 < length <= _MOST:
        why = f"is {show(length)}, not an integer from 1 to {_MOST}"
        config.refuse("sliding_window_pattern or full_attention_interval", why)
    return (*[pattern[0]] * (length - 1), FULL)


def _rope_layers(config: Config, count: int) -> list[bool]:
    stated = config.stated("no_rope_layers")
    every = config.size("no_rope_layer_interval", default=4)
    if not stated:
        return [(i + 1) % every != 0 for i in range(count)]
    if not isinstance(stated, list) or len(stated) < count:
        config.refuse("no_rope_layers", f"is no list of {count} layers")
    return [bool(turns) for turns in stated[:count]]


def _turns(config: Config, mixers: list[str]) -> list[bool]:
    turns = config.architecture.turns
    if turns == "listed":
        return _rope_layers(config, len(mixers))
    if turns == "sliding" and SLIDING in mixers:
        return [mixer == SLIDING for mixer in mixers]
    return [True] * len(mixers)


def _listed_feeds(config: Config, count: int) -> list[str]:
    stated = config.stated("mlp_layer_types")
    if not stated:
        return []
    kinds = {"dense": DENSE, "sparse": MOE}
    if not isinstance(stated, list) or len(stated) < count:
        config.refuse("mlp_layer_types", f"is no list of {count} layers")
    for kind in stated:
        if not isinstance(kind, str) or kind not in kinds:
            why = f"has {show(kind)}: known are {', '.join(kinds)}"
            config.refuse("mlp_layer_types", why)
    return [kinds[kind] for kind in stated[:count]]


def _experts_at(config: Config) -> Callable[[int], bool]:
    """Return whether a layer has experts, by its number."""
    dense = config.get("mlp_only_layers") or []
    if not experts(config):
        return lambda layer: False
    listed = config.stated("moe_layers")
    first = config.count("first_k_dense_replace")
    if config.get("first_k_dense_replace") is None:
        first = config.architecture.dense_first
    every = config.get("moe_layer_freq", "decoder_sparse_step")
    step = config.count("interleave_moe_layer_step") or 1
    if not all(isinstance(value, list) for value in (dense, listed or [])):
        config.refuse("mlp_only_layers or moe_layers", "is no list of layers")
    if isinstance(every, list):
        return lambda layer: bool(every[layer : layer + 1] == [1])
    if every is not None and (type(every) is not int or every < 1):
        config.refuse("moe_layer_freq", f"is {show(every)}, not a positive integer")
    if listed:
        return lambda layer: layer in listed
    # Qwen counts from 1, DeepSeek from 0: both have 1
    offset = 1 if config.get("decoder_sparse_step") else 0
    return lambda layer: (
        layer >= first
        and layer not in dense
        and (layer + offset) % (every or 1) == 0
        and (layer + 1) % step == 0
    )
