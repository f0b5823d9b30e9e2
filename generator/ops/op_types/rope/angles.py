"""Rotation of each pair of dimensions by position: cosines and sines in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

# of Llama 3.1, and of gpt-oss's and DeepSeek's YaRN
OLD_CONTEXT = {"llama31": 8192, "yarn": 4096, "deepseek": 4096}
BETA_FAST, BETA_SLOW = 32.0, 1.0
LOW_FREQ, HIGH_FREQ = 1.0, 4.0


def turns(constants: Mapping[str, Any], inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return what each pair is multiplied by: complex128 [num_tokens, rotary_dim / 2].

    `inputs` have cos_sin_cache with positions, int64 [num_tokens] or, of three axes,
    [3, num_tokens]; or pos_ids and q, whose whole heads turn.
    """
    if "pos_ids" in inputs:
        factor, steps = frequencies(inputs["q"].shape[-1], constants)
        positions = inputs["pos_ids"].double()
        angles = torch.outer(positions, steps.to(positions.device))
        return torch.polar(torch.full_like(angles, factor), angles)
    cache, positions = inputs["cos_sin_cache"].double(), inputs["positions"]
    half = cache.shape[1] // 2
    whole = torch.complex(cache[:, :half], cache[:, half:])
    if positions.dim() == 1:
        return whole.index_select(0, positions)
    axes = torch.tensor(axes_of_pairs(half, constants), device=positions.device)
    pairs = torch.arange(half, device=positions.device)
    # of pair i the position on its axis: [num_tokens, rotary_dim / 2]
    return whole[positions[axes].T, pairs]


def axes_of_pairs(half: int, constants: Mapping[str, Any]) -> list[int]:
    """Return the axis of positions that turns each pair: 0 is temporal, then height.

    Sections stand one after the other. Interleaved, pair i is of axis i mod 3 as long as
    the axis has pairs left, and of axis 0 then.
    """
    if not constants["axes_interleaved"]:
        bounds = (constants["temporal"], constants["temporal"] + constants["height"])
        return [sum(pair >= bound for bound in bounds) for pair in range(half)]
    counts = (half, constants["height"], constants["width"])
    return [p % 3 if p // 3 < counts[p % 3] else 0 for p in range(half)]


def scaling_of(constants: Mapping[str, Any]) -> str:
    """Return how frequencies are scaled: a key of OLD_CONTEXT, or nothing."""
    return next((kind for kind in OLD_CONTEXT if constants.get(kind)), "")


def frequencies(
    head_size: int, constants: Mapping[str, Any]
) -> tuple[float, torch.Tensor]:
    """Return the factor of cosines and sines, and radians a position of each pair.

    float64 [head_size / 2]. Sources: transformers' rope utilities, by `rope_type`.
    """
    theta, scaling = float(constants["rope_theta"]), scaling_of(constants)
    plain = [theta ** (-2.0 * i / head_size) for i in range(head_size // 2)]
    scale = float(constants.get("rope_scale", 1.0))
    shares = [_kept(i, f, head_size, theta, scaling) for i, f in enumerate(plain)]
    mixed = [k * f + (1.0 - k) * f / scale for k, f in zip(shares, plain, strict=True)]
    factor = 1.0 + math.log(scale) / 10.0 if scaling == "yarn" else 1.0
    return factor, torch.tensor(mixed, dtype=torch.float64)


def _kept(
    pair: int, frequency: float, head_size: int, theta: float, scaling: str
) -> float:
    """Return how much of a plain frequency stays, from 0 to 1; the rest is scaled."""
    if not scaling:
        return 1.0
    turns_of_all = OLD_CONTEXT[scaling] / (2.0 * math.pi)
    if scaling == "llama31":
        share = (turns_of_all * frequency - LOW_FREQ) / (HIGH_FREQ - LOW_FREQ)
        return min(max(share, 0.0), 1.0)
    # between the pairs that turn 32 times, and once
    low, high = (
        head_size / 2.0 * math.log(turns_of_all / beta, theta)
        for beta in (BETA_FAST, BETA_SLOW)
    )
    if scaling == "deepseek":
        low, high = math.floor(low), math.ceil(high)
    return 1.0 - min(max((pair - low) / (high - low), 0.0), 1.0)
