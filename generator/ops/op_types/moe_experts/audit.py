"""Audit sizes of experts, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return fewer experts, not fewer than a token has and three more."""
    return _small(axes, 96, 64)


def for_limits(axes: Axes) -> Axes:
    """Return short rows of all experts: topk_ids are their numbers."""
    return {k: v for k, v in _small(axes, 96, 64).items() if k != "num_experts"}


def _small(axes: Axes, hidden: int, intermediate: int) -> dict[str, int]:
    return {
        "num_experts": axes["top_k"] + 3,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "gemm1_out_size": 2 * intermediate,
        "hidden_packed": hidden // 2,
        "intermediate_packed": intermediate // 2,
        "num_hidden_blocks": hidden // 32,
        "num_intermediate_blocks": intermediate // 32,
    }


unrounded = reduced


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to six tokens, in some rounds with experts elsewhere."""
    elsewhere = other and definition.axes["top_k"] > 1
    params = {**case.params, **({"elsewhere": True} if elsewhere else {})}
    # of several tokens the last is all elsewhere
    return {"seq_len": draw.integers(2, 7, 1)[0]}, params
