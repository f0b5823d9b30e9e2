"""Queries against a far sm_scale, which solutions are asked; inputs of one call alone.

PyTorch's flash attention masks keys by -infinity, and agrees at any sm_scale; the kernels
for which `far_of_attention` leaves such cases out are FlashInfer's.
"""

from __future__ import annotations

from collections.abc import Sequence

from generator.ops.attention.judged import far_of_attention
from generator.ops.op_types.attention_backward.op import cases as cases_of_kernels
from kernel_judge.definition import Case, Definition

# the forward pass computed it from these: a solution may do so again
INPUTS_GO_TOGETHER = {"lse": ("output", "q", "k", "v", "sm_scale")}


def cases(definition: Definition) -> list[Case]:
    """Return the cases of an sm_scale far from the usual."""
    return [case for case in cases_of_kernels(definition) if case.moved]


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the cases of far factors that kernels can be asked."""
    return far_of_attention(definition, declared)
