"""The work of experts that are chosen already: each chosen one's weights are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.op_types.moe_experts.inputs import expert_sizes
from generator.ops.work import Work, size_of, sizes_of, written
from kernel_judge.definition import Definition

_TOKENS = ("hidden_states", "topk_ids", "topk_weights")


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the operations of both layers for each choice, and the bytes they need."""
    ids, (experts, _) = inputs["topk_ids"], expert_sizes(axes)
    chosen = ids[(ids >= 0) & (ids < experts)]
    used = len(torch.unique(chosen))
    of_experts = [v for n, v in inputs.items() if n.startswith(("w13", "w2"))]
    read = sizes_of(inputs, _TOKENS)
    read += sum(size_of(v) for v in of_experts) * used // experts
    sides = axes["gemm1_out_size"] + axes["intermediate_size"]
    flops = 2 * chosen.numel() * axes["hidden_size"] * sides
    # activations may be rounded to the weights' format
    dtype = "float4" if "hidden_packed" in axes else str(inputs["w13"].dtype)[6:]
    return Work(read, written(definition, axes, inputs), {dtype: flops})
