"""Audit sizes of grouped products, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.grouped_gemm_fp8.op import case_of
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return two blocks of columns and three of terms, of all experts.

    Workloads state how many rows each expert has, or the number of each row's expert.
    """
    return {"N": 256, "K": 384, "num_n_blocks": 2, "num_k_blocks": 3}


def tiny(axes: Axes) -> Axes:
    """Return the same of few experts."""
    return {**reduced(axes), "num_experts": 3}


def for_limits(axes: Axes) -> Axes:
    """Return all experts, whose numbers are values of an input, and one block each."""
    return {"N": 128, "K": 128, "num_n_blocks": 1, "num_k_blocks": 1}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return up to seven rows of each expert, and one of one of them at least."""
    experts = definition.axes["num_experts"]
    rows = draw.integers(0, 8, experts)
    rows[draw.child("least").integers(0, experts, 1)[0]] += 1
    ours = case_of(definition, case.name, case.size, tuple(rows))
    return dict(ours.axes), dict(ours.params)
