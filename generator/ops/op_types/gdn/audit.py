"""Audit sizes of delta nets, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# lengths of sequences: a step takes as long as all of an attention's keys
_SHORTEST = 9


def reduced(axes: Axes) -> Axes:
    """Return few heads of the same ratio, and short ones."""
    ratio = axes["num_v_heads"] // axes["num_k_heads"]
    heads = {"num_q_heads": 2, "num_k_heads": 2, "num_v_heads": 2 * ratio}
    return {**heads, "head_size": 32}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return other lengths of sequences, and shorter queries."""
    params, axes = dict(case.params), dict(case.axes)
    if other:
        # where queries have length 1 it does not show that they are normalised once more
        params["q_length"] = 0.5
    if "lengths" in params:
        tokens = draw.integers(0, _SHORTEST, draw.integers(1, 4, 1)[0])
        tokens[0] = max(tokens[0], 1)
        params["lengths"] = tuple(tokens)
        axes["total_seq_len"] = sum(tokens)
        axes |= {"num_seqs": len(tokens), "len_cu_seqlens": len(tokens) + 1}
    return axes, params
