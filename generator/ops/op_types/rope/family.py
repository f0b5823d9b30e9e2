"""Rotary position embedding: from a cache, by three positions, of normalised heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.rope import workloads
from generator.ops.reference_text import reference_text

CACHED_TEXT = "rope_with_cos_sin_cache"
CACHED = "fi_api:flashinfer.rope.apply_rope_with_cos_sin_cache_inplace"
QUERY, KEY = (
    ("num_tokens", heads, "head_size") for heads in ("num_qo_heads", "num_kv_heads")
)


@dataclass(frozen=True)
class RotatedHeads:
    """The constants of one definition, and the models that have them.

    `counts` are query and key heads of one GPU, `positions` the rows of the cache that
    its workloads have. `style` is how dimensions are paired: neox, or gptj.
    """

    head_size: int
    rotary_dim: int
    models: tuple[str, ...]
    counts: tuple[tuple[int, int], ...] = ((32, 8),)
    positions: int = 131_072
    style: str = "neox"


_DENSE = ("llama-3.1-8b", "llama-3.1-70b", "mistral-7b-v0.1", "qwen3-8b", "qwen3-32b")
_GPT_OSS = ("gpt-oss-120b", "gpt-oss-20b")
_MINIMAX = ((48, 8), (24, 4), (12, 2), (6, 1))
HEADS = (
    RotatedHeads(128, 64, ("minimax-m2",), _MINIMAX, 196_608),
    RotatedHeads(64, 64, ("llama-3.2-1b", *_GPT_OSS), ((32, 8), (64, 8))),
    RotatedHeads(128, 128, _DENSE, ((32, 8), (64, 8), (8, 1))),
    RotatedHeads(256, 64, ("qwen3-next-80b-a3b",), ((16, 2), (8, 1))),
    RotatedHeads(256, 256, ("gemma-2-9b",), ((16, 8),), 8192),
    # the rotary part of latent attention: all query heads share one key
    RotatedHeads(
        64,
        64,
        ("deepseek-v3", "deepseek-r1", "kimi-k2"),
        ((128, 1), (16, 1)),
        style="gptj",
    ),
    RotatedHeads(
        128,
        128,
        ("llama-4-scout", "llama-4-maverick"),
        ((40, 8), (5, 1)),
        style="gptj",
    ),
)
_PAIRS = {
    "neox": (
        "Rotary position embedding, NeoX style: dimension i of a head turns with"
        " dimension i + rotary_dim / 2; those from rotary_dim on pass through."
    ),
    "gptj": (
        "Rotary position embedding, GPT-J style: dimension 2i of a head turns with"
        " dimension 2i + 1; those from rotary_dim on pass through."
    ),
}


@dataclass(frozen=True)
class Sections:
    """Numbers of frequencies that each of three positions turns, and the heads."""

    temporal: int
    height: int
    width: int
    interleaved: bool
    heads: RotatedHeads


@dataclass(frozen=True)
class Normalised:
    """The constants of heads that are normalised before they turn."""

    eps: float
    unit_offset: bool
    heads: RotatedHeads


@dataclass(frozen=True)
class Positions:
    """The constants of heads that turn by positions alone.

    `kind` is a word of the name: plain where it is empty, llama31, yarn or deepseek.
    """

    kind: str
    theta: int
    scale: int
    num_qo_heads: int
    num_kv_heads: int
    head_size: int
    models: tuple[str, ...]


SECTIONS = (
    Sections(16, 24, 24, False, RotatedHeads(128, 128, ("qwen2-vl-7b",), ((28, 4),))),
    Sections(24, 20, 20, True, RotatedHeads(128, 128, ("qwen3-vl-8b",), ((32, 8),))),
    Sections(11, 11, 10, True, RotatedHeads(256, 64, ("qwen3.5-35b-a3b",), ((16, 2),))),
)
_QWEN3 = ("qwen3-8b", "qwen3-14b", "qwen3-32b", "qwen3-30b-a3b", "qwen3-235b-a22b")
NORMALISED = (
    Normalised(
        1e-06, False, RotatedHeads(128, 128, _QWEN3, ((32, 8), (40, 8), (64, 4)))
    ),
    Normalised(1e-05, False, RotatedHeads(128, 64, ("glm-4.6",), ((96, 8), (12, 1)))),
    Normalised(1e-06, True, RotatedHeads(128, 128, ("gemma-3-27b",), ((32, 16),))),
    Normalised(1e-06, True, RotatedHeads(256, 64, ("qwen3-next-80b-a3b",), ((16, 2),))),
)
POSITIONS = (
    Positions("", 10_000, 1, 32, 8, 128, ("mistral-7b-v0.1",)),
    Positions("", 1_000_000, 1, 32, 8, 128, ("qwen3-8b",)),
    Positions("llama31", 500_000, 8, 32, 8, 128, ("llama-3.1-8b",)),
    Positions("llama31", 500_000, 8, 64, 8, 128, ("llama-3.1-70b",)),
    Positions("llama31", 500_000, 32, 24, 8, 128, ("llama-3.2-3b",)),
    Positions("yarn", 150_000, 32, 64, 8, 64, _GPT_OSS),
    Positions("deepseek", 10_000, 40, 128, 1, 64, ("deepseek-v3", "deepseek-r1")),
)
_FREQUENCIES = {
    "": "Pair i turns by theta ** (-2i / head_size) radians a position, theta {theta}.",
    "llama31": (
        "Pair i turns by f = theta ** (-2i / head_size) radians a position, theta"
        " {theta}, as in Llama 3.1: by f / {scale} where it turns less than once in 8192"
        " positions, by f where it turns 4 times and more, and by a mix that is linear in"
        " the number of turns between."
    ),
    "yarn": (
        "Pair i turns by f = theta ** (-2i / head_size) radians a position, theta"
        " {theta}, mixed by YaRN with f / {scale}: between the pairs that turn 32 times,"
        " and once, in 4096 positions the mix is linear in i; both ends are fractions."
        " Cosines and sines are times 0.1 * ln({scale}) + 1."
    ),
    "deepseek": (
        "Pair i turns by f = theta ** (-2i / head_size) radians a position, theta"
        " {theta}, mixed by YaRN with f / {scale}: between the pairs that turn 32 times,"
        " rounded down, and once, rounded up, in 4096 positions the mix is linear in i."
        " YaRN's factor is part of the softmax scale."
    ),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return (
        *(cached_spec(heads) for heads in HEADS),
        *(mrope_spec(sections) for sections in SECTIONS),
        *(normalised_spec(normalised) for normalised in NORMALISED),
        *(positions_spec(positions) for positions in POSITIONS),
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if not name.startswith("rope_with_cos_sin_cache_"):
        return None
    style = "gptj" if "_gptj_" in name else "neox"
    return cached_spec(RotatedHeads(sizes["d"], sizes["rd"], (model,), style=style))


def cached_spec(heads: RotatedHeads) -> Spec:
    """Return the definition that turns heads by the rows of a cache."""
    return _spec(
        name=f"{CACHED_TEXT}_{heads.style}_style_d{heads.head_size}_rd{heads.rotary_dim}",
        description=f"{_PAIRS[heads.style]} {_ROWS}",
        tags=(*_models(heads.models), CACHED),
        axes=_axes(heads),
        inputs={
            "q": Tensor(QUERY, "bfloat16", "Queries."),
            "k": Tensor(KEY, "bfloat16", "Keys."),
            "cos_sin_cache": _CACHE,
            "positions": _POSITIONS,
        },
        reference=reference_text("rope", CACHED_TEXT, (heads.style,)),
        structure=partial(
            workloads.positions, heads=heads.counts, rows=heads.positions
        ),
        fits=workloads.positions_fit,
        traffic=workloads.long_context,
    )


def mrope_spec(sections: Sections) -> Spec:
    """Return the definition whose tokens have three positions each."""
    heads, counts = sections.heads, (sections.height, sections.width)
    style = "interleaved" if sections.interleaved else "sectioned"
    values = {"HEIGHT": counts[0], "WIDTH": counts[1]}
    which = (
        f"position 1 turns pairs 1, 4, 7 ..., {counts[0]} of them, position 2 pairs 2, 5,"
        f" 8 ..., {counts[1]} of them, position 0 the other {sections.temporal}."
    )
    if not sections.interleaved:
        values["TEMPORAL"] = sections.temporal
        which = (
            f"position 0 turns the first {sections.temporal} pairs, position 1 the next"
            f" {counts[0]}, position 2 the last {counts[1]}."
        )
    return _spec(
        name=f"mrope_{style}_t{sections.temporal}_y{counts[0]}_x{counts[1]}"
        f"_d{heads.head_size}_rd{heads.rotary_dim}",
        description=(
            f"{_PAIRS['neox']} A token has three positions, in time, down and across an"
            f" image: {which} {_ROWS}"
        ),
        tags=(*_models(heads.models), CACHED),
        axes={**_axes(heads), "num_axes": Axis("Positions of a token.", 3)},
        inputs={
            "q": Tensor(QUERY, "bfloat16", "Queries."),
            "k": Tensor(KEY, "bfloat16", "Keys."),
            "cos_sin_cache": _CACHE,
            "positions": Tensor(
                ("num_axes", "num_tokens"), "int64", "Each token's rows of the cache."
            ),
        },
        constraints=("num_axes == 3",),
        reference=reference_text("rope", CACHED_TEXT, (style,), **values),
        structure=partial(
            workloads.three_positions, heads=heads.counts, rows=heads.positions
        ),
        fits=workloads.three_positions_fit,
    )


def normalised_spec(normalised: Normalised) -> Spec:
    """Return the definition that normalises each head, then turns it."""
    heads, eps = normalised.heads, normalised.eps
    module = f"{'gemma_' if normalised.unit_offset else ''}qk_rmsnorm_rope"
    word = f"eps_{eps:.0e}".replace("e-0", "em")
    weight = "(1 + weight)" if normalised.unit_offset else "weight"
    return _spec(
        name=f"{module}_{word}_d{heads.head_size}_rd{heads.rotary_dim}",
        description=(
            f"RMS norm of each head, x * rsqrt(mean(x^2) + {eps}) * {weight}, then rotary"
            f" embedding, in float32 and rounded once. {_PAIRS['neox']} {_ROWS}"
        ),
        tags=(*_models(heads.models), CACHED),
        axes=_axes(heads),
        inputs={
            "q": Tensor(QUERY, "bfloat16", "Queries."),
            "k": Tensor(KEY, "bfloat16", "Keys."),
            "q_weight": Tensor(("head_size",), "bfloat16", "Scale of queries."),
            "k_weight": Tensor(("head_size",), "bfloat16", "Scale of keys."),
            "cos_sin_cache": _CACHE,
            "positions": _POSITIONS,
        },
        reference=reference_text(
            "rope", "qk_rmsnorm_rope", ("gemma",) * normalised.unit_offset, EPS=eps
        ),
        structure=partial(
            workloads.positions, heads=heads.counts, rows=heads.positions
        ),
        fits=workloads.positions_fit,
        traffic=workloads.long_context,
    )


def positions_spec(positions: Positions) -> Spec:
    """Return the definition that turns heads by their positions, without a cache."""
    kind, theta, scale = positions.kind, positions.theta, positions.scale
    module = f"{kind}_rope_pos_ids" if kind else "rope_pos_ids"
    style, word = ("gptj", "_gptj") if kind == "deepseek" else ("neox", "")
    heads = RotatedHeads(positions.head_size, positions.head_size, positions.models)
    axes = _axes(heads)
    scaled = f"_scale{scale}" if kind else ""
    counts = (positions.num_qo_heads, positions.num_kv_heads)
    apis = {"": "apply_rope_pos_ids", "llama31": "apply_llama31_rope_pos_ids"}
    return _spec(
        name=f"{module}{word}_theta{theta}{scaled}"
        f"_h{counts[0]}_kv{counts[1]}_d{positions.head_size}",
        description=(
            f"{_PAIRS[style].partition(';')[0].replace('rotary_dim', 'head_size')}."
            f" {_FREQUENCIES[kind].format(theta=theta, scale=scale)}"
        ),
        tags=(
            *_models(positions.models),
            *(f"fi_api:flashinfer.rope.{apis[k]}" for k in apis if k == kind),
            "tp:1",
        ),
        axes={
            "num_tokens": axes["num_tokens"],
            "num_qo_heads": Axis("Query heads.", counts[0]),
            "num_kv_heads": Axis("Key heads.", counts[1]),
            "head_size": axes["head_size"],
        },
        inputs={
            "q": Tensor(QUERY, "bfloat16", "Queries."),
            "k": Tensor(KEY, "bfloat16", "Keys."),
            "pos_ids": Tensor(("num_tokens",), "int32", "Each token's position."),
        },
        reference=reference_text(
            "rope",
            "rope_pos_ids",
            (kind,) if kind else (),
            ROPE_THETA=theta,
            **({"ROPE_SCALE": scale} if kind else {}),
        ),
        structure=workloads.short_positions,
        fits=workloads.positions_fit,
    )


_ROWS = "A row of the cache is the cosines of a position, then its sines."
_CACHE = Tensor(
    ("max_seq_len", "rotary_dim"),
    "float32",
    "rotary_dim / 2 cosines of each position, then as many sines.",
)
_POSITIONS = Tensor(("num_tokens",), "int64", "Each token's row of the cache.")
_OUTPUTS = {
    "q_out": Tensor(QUERY, "bfloat16", "Turned queries."),
    "k_out": Tensor(KEY, "bfloat16", "Turned keys."),
}


def _spec(**given: Any) -> Spec:
    """Return a definition of what all have in common, and what is given."""
    return Spec(
        op_type="rope",
        outputs=_OUTPUTS,
        captured_from="gemm_n2048_k4096",
        captured_op_type="gemm",
        **given,
    )


def _models(models: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"model:{model}" for model in models)


def _axes(heads: RotatedHeads) -> dict[str, Axis]:
    return {
        "num_tokens": Axis("Number of tokens."),
        "num_qo_heads": Axis("Query heads."),
        "num_kv_heads": Axis("Key heads."),
        "head_size": Axis("Length of a head.", heads.head_size),
        "rotary_dim": Axis("Leading dimensions of a head that turn.", heads.rotary_dim),
        "max_seq_len": Axis("Positions of the cache."),
    }
