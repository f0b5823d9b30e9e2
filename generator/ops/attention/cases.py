"""Cases of attention, and the inputs that several ops draw alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import mul
from typing import Any

import torch

from generator.ops.attention.masks import BOTH_WAYS
from generator.ops.attention.variant import has_mask, has_sinks, variant_of
from generator.ops.far_factors import with_factors
from generator.ops.paging import SPARE_PAGES, indptr, page_counts
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream

# length of DeepSeek's and Kimi's heads before absorption into the latent
QK_NOPE_HEAD_DIM = 128

# around a page and around the kernels' block of 64 keys
_BOUNDARIES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129)
_RAGGED = tuple(Stream("ragged lengths").integers(1, 512, 16))
_LONG = tuple(Stream("long lengths").integers(1, 4096, 64))

_DECODE = {
    "single-token": ("small", (1,)),
    "boundaries": ("small", _BOUNDARIES),
    "empty-sequence": ("small", (17, 0, 5, 0)),
    "extreme-logits": ("small", (70, 3, 200)),
    "other-scale": ("small", (3, 33, 64)),
    "one-long": ("medium", (700, 1, 2, 3)),
    "ragged": ("medium", _RAGGED),
    "long": ("large", _LONG),
}
# the first key equals the query
HEAVY_OUTSIDE = "heavy-key-outside-window"
# (query length, key length) of each sequence
_PREFILL = {
    "single-token": ("small", ((1, 1),)),
    "whole-prompt": ("small", tuple((n, n) for n in (1, 5, 31, 32, 33, 64, 65))),
    "chunked": ("small", ((16, 80), (1, 129), (33, 64), (64, 65))),
    "more-queries-than-keys": ("small", ((7, 3), (4, 0), (5, 5), (70, 1))),
    "empty-sequence": ("small", ((0, 0), (3, 17), (0, 9), (2, 2))),
    "extreme-logits": ("small", ((9, 70), (40, 40))),
    "other-scale": ("small", ((3, 33), (20, 20), (1, 64))),
    "one-long": ("medium", ((300, 300), (1, 1), (2, 3))),
    "ragged": ("medium", tuple((n % 97 + 1, n + 97) for n in _RAGGED[:8])),
    "long": ("large", tuple((n % 509 + 1, n + 509) for n in _LONG[:16])),
}

# beyond what is usual, and beyond what is captured: batches, queries, keys, pages. The
# queries before a sequence's first key see none, which is cheap
_PAST_DECODE = (2_100, *[100] * 33)
_PAST_PREFILL = ((520, 8), (3, 2_100), *[(1, 1)] * 32)
_FAR_PREFILL = ((8_210, 12), (2, 66_000))
_FAR_QUERIES = ((8_210, 12), *[(1, 1)] * 62)
_FAR_KEYS = ((2, 131_100), (1, 1))
# of many heads a machine may hold long sequences or many of them, and not many pages
_MANY, _FAR = "many-sequences", "far-past-limits"


def _many_pages(page_size: int) -> int:
    """Return the length of a sequence of 16 pages, the last half full."""
    return 16 * page_size - page_size // 2


def decode_cases(definition: Definition) -> list[Case]:
    """Return the decode cases over pages: one query a sequence."""
    page_size = definition.axes["page_size"]
    limits = {
        "past-limits": (LIMITS, _PAST_DECODE),
        _MANY: (LIMITS, (66_000, *[page_size] * 520)),
        _FAR: (LIMITS, (_many_pages(page_size),) * 520),
    }
    lengths = {**_DECODE, **_at_window(definition), **limits}
    cases = [
        _in_pool(
            definition,
            paged_case(name, size, [1] * len(kv_lens), kv_lens, page_size),
        )
        for name, (size, kv_lens) in lengths.items()
    ]
    return with_far_factors(definition, cases)


def _in_pool(definition: Definition, case: Case) -> Case:
    """Return a case; the farthest of limits in a pool of as many pages as are served."""
    if case.name != _FAR:
        return case
    inputs = definition.interface.inputs
    is_token = definition.axes["page_size"] == 1
    is_large = "ckv_cache" in inputs or "qo_indptr" in inputs
    least = 1 << 19 if is_token else 1 << 13 if is_large else 0
    # so many beyond that some are surely among those drawn
    pages = max(case.axes["num_pages"], least + (least >> 8))
    return replace(case, axes={**case.axes, "num_pages": pages})


def _at_window(definition: Definition) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return cases of key lengths around those that a sliding window covers.

    Among thousands of keys one weighs little. In the second the first key, which is the
    only one outside, would outweigh all others.
    """
    left = variant_of(definition).window_left
    if left < 0:
        return {}
    return {
        "around-window": ("small", (left, left + 1, left + 2, 5)),
        HEAVY_OUTSIDE: ("small", (left + 2,)),
    }


def prefill_cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over pages: several queries a sequence."""
    page_size = definition.axes["page_size"]
    options = page_size, has_mask(definition)
    masked = {BOTH_WAYS: ("small", ((9, 9), (9, 30), (9, 70)))} if options[1] else {}
    limits = {
        "past-limits": (LIMITS, _PAST_PREFILL),
        _MANY: (LIMITS, (*_FAR_PREFILL, *[(1, page_size)] * 520)),
        _FAR: (LIMITS, ((1, _many_pages(page_size)),) * 520),
    }
    cases = [
        _in_pool(
            definition,
            paged_case(
                name, size, [q for q, _ in pairs], [kv for _, kv in pairs], *options
            ),
        )
        for name, (size, pairs) in {
            **_prefill_lengths(definition),
            **masked,
            **limits,
        }.items()
    ]
    return with_far_factors(definition, cases)


def ragged_cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    limits = {
        "past-limits": (LIMITS, _PAST_PREFILL),
        _MANY: (LIMITS, _FAR_QUERIES),
        _FAR: (LIMITS, _FAR_KEYS),
    }
    cases = [
        ragged_case(name, size, [q for q, _ in pairs], [kv for _, kv in pairs])
        for name, (size, pairs) in {**_prefill_lengths(definition), **limits}.items()
    ]
    return with_far_factors(definition, cases)


def _prefill_lengths(
    definition: Definition,
) -> dict[str, tuple[str, tuple[tuple[int, int], ...]]]:
    """Return case → size and (query length, key length) of each sequence."""
    left = variant_of(definition).window_left
    if left < 0:
        return _PREFILL
    # queries on both sides of where the window leaves the first key
    edges = ((1, left + 1), (3, left + 2), (40, left + 20), (4, 4))
    # a prompt of which no query sees all, as far as its logits fit in memory
    queries = left + 70 if left <= 128 else 70
    return {
        **_PREFILL,
        "around-window": ("small", edges),
        "beyond-window": ("medium", ((queries, left + 70),)),
    }


def ragged_case(
    name: str, size: str, q_lens: Sequence[int], kv_lens: Sequence[int]
) -> Case:
    """Return a case of sequences whose keys are contiguous."""
    axes = {
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "total_kv": sum(kv_lens),
    }
    return Case(name, size, axes, _params(name, q_lens, kv_lens))


def paged_case(
    name: str,
    size: str,
    q_lens: Sequence[int],
    kv_lens: Sequence[int],
    page_size: int,
    masked: bool = False,
) -> Case:
    """Return a case of sequences whose keys are in pages, `masked` by an input."""
    pages = sum(page_counts(kv_lens, page_size))
    axes = {
        "batch_size": len(kv_lens),
        "len_indptr": len(kv_lens) + 1,
        "total_q": sum(q_lens),
        "num_kv_indices": pages,
        "num_pages": pages + SPARE_PAGES,
    }
    if masked:
        axes["mask_len"] = sum(map(mul, q_lens, kv_lens))
    return Case(name, size, axes, _params(name, q_lens, kv_lens))


def _params(name: str, q_lens: Sequence[int], kv_lens: Sequence[int]) -> dict[str, Any]:
    lengths = {"q_lens": tuple(q_lens), "kv_lens": tuple(kv_lens)}
    return {**lengths, **logit_params(name)}


def logit_params(name: str) -> dict[str, float]:
    """Return the params that set a case's logits: q_std, and scale in other-scale."""
    # a deviation of 2 concentrates the weights on few keys: an error in one shows
    params = {"q_std": 40.0 if name == "extreme-logits" else 2.0}
    if name == "other-scale":
        params["scale"] = 0.75
    return params


_STORED = ("q_scale", "k_scale", "v_scale", "ckv_scale", "kpe_scale")


def with_far_factors(definition: Definition, cases: Sequence[Case]) -> list[Case]:
    """Return cases and two more, whose scales are far from the usual, not their logits.

    Scales of stored queries, keys and values are moved where they are inputs, else the
    queries, against sm_scale.
    """
    (case,) = (one for one in cases if one.name == "other-scale")
    inputs = definition.interface.inputs
    scales = [name for name in _STORED if name in inputs]
    queries = ("q", "q_nope", "q_pe", "q_p", "q_d")
    moved = scales or [name for name in queries if name in inputs]
    specs = definition.interface.input_specs
    # scales leave the range of float16; its own queries can't follow upwards
    is_short = any(specs[name].dtype == "float16" for name in moved)

    def powers(power: float) -> dict[str, float]:
        against = -2 * power if "q_scale" in inputs else -power
        return {**dict.fromkeys(moved, power), "sm_scale": against}

    return [
        *cases,
        with_factors(case, "factors-up", **powers(12.0 if is_short else 20.0)),
        # an sm_scale of three quarters of a power of two has to leave it to show
        with_factors(case, "factors-down", **powers(-20.0 if is_short else -24.0)),
    ]


def scale_of(case: Case, dim: int) -> float:
    """Return the case's sm_scale: 1 / sqrt(dim), in other-scale 0.75 of it.

    Only other-scale shows a reference that ignores its input and computes the scale.
    """
    return float(case.params.get("scale", 1.0)) / math.sqrt(dim)


def ragged_inputs(
    definition: Definition, case: Case, stream: Stream, qk_dim: int, vo_dim: int
) -> dict[str, Any]:
    """Return the inputs of attention over contiguous keys.

    q [total_q, num_qo_heads, qk_dim], k [total_kv, num_kv_heads, qk_dim] and v
    [total_kv, num_kv_heads, vo_dim] of the declared dtype, qo_indptr and kv_indptr int32
    [len_indptr], sm_scale float; sinks float32 [num_qo_heads] where declared.
    """
    axes = {**definition.axes, **case.axes}
    kv_heads = (axes["total_kv"], axes["num_kv_heads"])
    dtype = dtype_of(definition.interface.input_specs["q"].dtype)
    shapes = {
        "q": (axes["total_q"], axes["num_qo_heads"], qk_dim),
        "k": (*kv_heads, qk_dim),
        "v": (*kv_heads, vo_dim),
    }
    stds = {"q": case.params["q_std"], "k": 1.0, "v": 1.0}
    inputs: dict[str, Any] = {
        name: stream.child(name).values(shape, stds[name], dtype)
        for name, shape in shapes.items()
    }
    inputs["qo_indptr"] = indptr(case.params["q_lens"])
    inputs["kv_indptr"] = indptr(case.params["kv_lens"])
    inputs["sm_scale"] = scale_of(case, qk_dim)
    if has_sinks(definition):
        inputs["sinks"] = sink_logits(axes["num_qo_heads"], stream)
    return {name: inputs[name] for name in definition.interface.inputs}


def sink_logits(heads: int, stream: Stream) -> torch.Tensor:
    """Return the sinks, natural logits: float32 [heads].

    Around 4, a logit's deviation being 2: among 64 keys a sink then has some 10 % of
    the weight, and in some heads most of it.
    """
    return stream.child("sinks").values((heads,), 2.0, torch.float32) + 4.0


def latent_queries(
    axes: Mapping[str, int], case: Case, tokens: int, stream: Stream
) -> dict[str, torch.Tensor]:
    """Return q_nope and q_pe of latent attention.

    bfloat16 [tokens, num_qo_heads, head_dim_ckv] and [tokens, num_qo_heads,
    head_dim_kpe].
    """
    # a logit has 576 products, but the scale is that of 192: divide by sqrt(576 / 192)
    std = case.params["q_std"] / math.sqrt(3.0)
    queries = {}
    for part, axis in (("nope", "head_dim_ckv"), ("pe", "head_dim_kpe")):
        shape = (tokens, axes["num_qo_heads"], axes[axis])
        queries[f"q_{part}"] = stream.child(part).values(shape, std, torch.bfloat16)
    return queries
