"""Audit sizes of experts, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.moe_experts.inputs import expert_sizes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return short rows of all experts: topk_ids of workloads are their numbers."""
    counts = {"num_experts", "num_all_experts"}
    return {k: v for k, v in tiny(axes).items() if k not in counts}


def tiny(axes: Axes) -> Axes:
    """Return short rows of few experts: not fewer than a token has and three more."""
    # two blocks of float8 each way, or three and two of mxfp4
    hidden, intermediate, block = (96, 64, 32)
    if "num_gemm1_out_blocks" in axes:
        hidden, intermediate, block = (256, 256, 128)
    experts = "num_all_experts" if "num_all_experts" in axes else "num_experts"
    return {
        experts: expert_sizes(axes)[1] + 3,
        "hidden_size": hidden,
        "intermediate_size": intermediate,
        "gemm1_out_size": 2 * intermediate,
        "hidden_packed": hidden // 2,
        "intermediate_packed": intermediate // 2,
        "num_hidden_blocks": hidden // block,
        "num_intermediate_blocks": intermediate // block,
        "num_gemm1_out_blocks": 2 * intermediate // block,
    }


unrounded = tiny


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to six tokens, in some rounds with experts elsewhere."""
    elsewhere = other and expert_sizes(definition.axes)[1] > 1
    params = {**case.params, **({"elsewhere": True} if elsewhere else {})}
    # of several tokens the last is all elsewhere
    return {"seq_len": draw.integers(2, 7, 1)[0]}, params
