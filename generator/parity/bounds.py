"""Error measures and their bounds, each with its derivation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import torch

Tensor = torch.Tensor
Found = dict[str, Any]

STAGE_FLOAT32 = 1e-12
"""NMSE of a stage in float32. One rounding costs u² = 2^-48 = 3.6e-15; references and
transformers differ in the order of sums of up to 2^8 terms, whose roundings add up to
some 256 u² = 9e-13."""
ABSORBED_FLOAT32 = 1e-11
"""The same where products are taken in another order: latent attention over a cache."""
_REORDERED = ("latent_attention", "delta_rule", "kimi_rule", "state_space")
ROUNDING_BFLOAT16 = 2.8e-6
"""NMSE of one rounding to bfloat16: a spacing of 2^-7 to 2^-8 of the value gives
(2^-7)² / 12 at a power of two and a quarter of it below the next, 2.8e-6 for mantissas
that are spread as those of sums are."""
ROUNDINGS: Mapping[str, int] = {
    "embedding": 1,
    "norm": 3,
    "add_norm": 4,
    "linear": 1,
    # a definition rounds the product before the bias is added
    "biased": 3,
    "rope": 4,
    "attention": 3,
    # with sinks transformers has its eager attention alone, which rounds the logits, the
    # scaled and the shifted ones, probabilities and the output; of a logit the rounding
    # is as large as itself, and exp makes it one of the probability
    "eager_attention": 7,
    "activation": 3,
    "add": 1,
    "softcap": 3,
    "embedding_multiple": 1,
    "add_multiple": 2,
    "logits_fraction": 1,
    "query_growth": 1,
    "latent_growth": 1,
    "layer_norm": 3,
    "plain_activation": 1,
    "image_places": 1,
    "join": 1,
    "join_add": 1,
    "speech_embedding": 6,
    "add_places": 1,
    "tile_places": 3,
    "tile_places_behind": 1,
    "padded_rows": 1,
    "padded_attention": 4,
    "gathered": 1,
    "gated_add": 2,
    "unchanged": 1,
    "whole_attention": 4,
    "biased_attention": 7,
    "scaled_experts": 10,
    "latent_norm": 3,
    "latent_rope": 4,
    # the query and the output pass one more product each
    "latent_attention": 6,
    "router": 1,
    "routing": 3,
    # gate, up, activation, their product, down and weighting of an expert; sums of
    # up to 8 experts, which transformers rounds one by one: half of them on average
    "experts": 10,
    "query_norm": 3,
    "ungated": 2,
    "delta_convolution": 3,
    "mamba_convolution": 3,
    # queries, keys and the output of a definition; gates of transformers; and values
    # that are read from a state are differences of what was written
    "delta_rule": 6,
    "kimi_rule": 6,
    # transformers rounds time steps twice, definitions the output
    "state_space": 6,
    "gated_norm": 4,
    "group_norm": 4,
    "output_gate": 2,
    "gated_sum": 3,
}
"""Roundings to bfloat16 that the two sides don't share, by kind of stage: transformers
rounds between the operations that a definition computes in float32."""
KERNEL_ROUNDINGS: Mapping[str, int] = {"attention": 2, "latent_attention": 2}
"""Roundings of kernels beside: tensor cores take probabilities in bfloat16, and parts
of a sequence leave partial results in the output's dtype."""
SHARED = 2.0
"""What bfloat16 may cost in place of transformers' own bfloat16, both against float32:
two computations that round equally often lie within a factor of 2 (measured: 1.28)."""
ROW = 10.0
"""The worst row may have this many times the bound: outliers hide in a mean."""


def nmse(actual: Tensor, expected: Tensor) -> float:
    """Return Σ(a - e)² / Σe², NaN where either side has one."""
    a, e = actual.double(), expected.double()
    scale = float(e.square().sum())
    error = float((a - e).square().sum())
    return error / scale if scale else (0.0 if error == 0 else math.inf)


def worst_row(actual: Tensor, expected: Tensor) -> tuple[int, float]:
    """Return the row with the largest error, and that error.

    It is relative to the row's energy, or to the mean energy where that is larger.
    """
    a, e = actual.double(), expected.double()
    energies = e.square().sum(dim=1)
    least = max(float(energies.mean()), torch.finfo(torch.float64).tiny)
    errors = (a - e).square().sum(dim=1) / energies.clamp(min=least)
    row = int(errors.argmax())
    return row, float(errors[row])


def worst_elements(actual: Tensor, expected: Tensor, most: int = 3) -> list[Any]:
    """Return the elements that differ most: row, column, actual, expected."""
    apart = (actual.double() - expected.double()).abs()
    places = apart.flatten().topk(min(most, apart.numel())).indices.tolist()
    columns = actual.shape[1]
    return [
        [
            i // columns,
            i % columns,
            float(actual.flatten()[i]),
            float(expected.flatten()[i]),
        ]
        for i in places
    ]


def stage_bound(kind: str, dtype: torch.dtype, *, is_kernel: bool = False) -> float:
    """Return the NMSE that is allowed of a stage on transformers' own inputs."""
    if dtype == torch.float32:
        return ABSORBED_FLOAT32 if kind in _REORDERED else STAGE_FLOAT32
    count = ROUNDINGS.get(kind, 4) + (KERNEL_ROUNDINGS.get(kind, 0) if is_kernel else 0)
    return SHARED * count * ROUNDING_BFLOAT16


def depth_bound(layers: int, of_stage: float = STAGE_FLOAT32) -> float:
    """Return the NMSE that is allowed behind a chain of layers in float32.

    Errors of layers add up: the measured growth is linear in depth. `of_stage` is the
    largest that a stage of a layer may have.
    """
    return of_stage * (layers + 1)


def chain_bound(kinds: Iterable[str], *, is_cached: bool) -> float:
    """Return the largest NMSE in float32 that a stage of a chain may have.

    Latent attention takes its products in another order over a cache alone.
    """
    counted = {kind for kind in kinds if is_cached or kind != "latent_attention"}
    return max(stage_bound(kind, torch.float32) for kind in counted)


def judged(error: float, bound: float) -> Found:
    """Return an error with its verdict."""
    return {"nmse": error, "bound": bound, "passed": error <= bound}


def ratio(actual: Tensor, model: Tensor, truth: Tensor) -> Found:
    """Judge an error in bfloat16 by that of transformers' model, both against float32."""
    error, theirs = nmse(actual, truth), nmse(model, truth)
    ratio = error / theirs if theirs else (0.0 if error == 0 else math.inf)
    return {
        "nmse": error,
        "own": theirs,
        "ratio": ratio,
        "bound": SHARED,
        "passed": ratio <= SHARED,
    }
