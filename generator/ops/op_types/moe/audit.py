"""Audit sizes of mixtures of experts, and the ranges of their random cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

_BLOCK = 128


def reduced(axes: Axes) -> Axes:
    """Return few experts and columns, or all experts where workloads state numbers of them.

    The columns are then fewer.
    """
    if "num_local_experts" not in axes:
        # without scales of blocks
        return _columns(_BLOCK, 64)
    return unrounded(axes)


def unrounded(axes: Axes) -> Axes:
    """Return more than one block of 128 each, not equally many, and fewer experts."""
    return {**_experts(axes, 32), **_columns(3 * _BLOCK, 2 * _BLOCK)}


def for_limits(axes: Axes) -> Axes:
    """Return short rows of all experts, whose numbers a workload may state."""
    return _columns(3 * _BLOCK, 2 * _BLOCK)


def tiny(axes: Axes) -> Axes:
    """Return few blocks and few experts."""
    # where experts are elsewhere, no token needs top_k of those here, but 16 in all
    devices = axes.get("num_experts", 0) // axes.get("num_local_experts", 2**30)
    has_blocks = "num_hidden_blocks" in axes
    return {
        **_experts(axes, max(4, 16 // devices) if devices > 1 else 12),
        **(_columns(2 * _BLOCK, _BLOCK) if has_blocks else _columns(_BLOCK, 64)),
    }


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to five tokens that choose of few experts, and other weights."""
    axes = {**case.axes, "seq_len": draw.integers(1, 6, 1)[0]}
    params = dict(case.params)
    params["local"] = _experts_here(definition, params, draw)
    # small cases give every token of a softmax the same weights, and DeepSeek's
    # have one scaling factor, and scores that are mostly positive
    if other:
        params["uneven"] = True
        params["factor"] = draw.child("factor").integers(4, 9, 1)[0] / 4.0
        params["bias_mean"] = -1.5
    return axes, params


def _experts(axes: Axes, most: int) -> dict[str, int]:
    """Return fewer experts; where some are elsewhere, in the same proportion."""
    names = [n for n in ("num_experts", "num_local_experts") if n in axes]
    factor = max(axes[names[-1]] // most, 1)
    return {name: axes[name] // factor for name in names}


def _columns(hidden: int, intermediate: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "gemm1_out_size": 2 * intermediate,
        "num_hidden_blocks": hidden // _BLOCK,
        "num_intermediate_blocks": intermediate // _BLOCK,
        "num_gemm1_out_blocks": 2 * intermediate // _BLOCK,
    }


def _experts_here(
    definition: Definition, params: Mapping[str, Any], draw: Stream
) -> int:
    """Return of how many experts here the tokens choose: few, which saves time.

    Where none are elsewhere, it takes more than each token has.
    """
    top_k = definition.constants["top_k"]
    fewest = 1 if params["remote"] else top_k + 1
    if params.get("ends"):
        fewest = max(fewest, 2)
    return int(min(params["local"], fewest + draw.child("here").integers(0, 3, 1)[0]))
