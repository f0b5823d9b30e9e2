"""The work of grouped products: the weights of experts that have rows, and these rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.work import Work, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the operations of rows that have an expert, and the bytes they need."""
    b, b_scale = inputs["b"], inputs["b_scale"]
    masked = "masked_m" in inputs
    if masked:
        rows, experts = (
            int(inputs["masked_m"].sum()),
            int((inputs["masked_m"] > 0).sum()),
        )
    else:
        named = inputs["m_indices"]
        rows, experts = int((named >= 0).sum()), len(torch.unique(named[named >= 0]))
    n, k = b.shape[1:]
    of_expert = n * k + b_scale[0].numel() * 4
    of_row = k + k // 128 * 4
    whole = written(definition, axes, inputs)
    if masked:
        # what the places beyond hold is nobody's
        whole = rows * n * 2
    return Work(
        experts * of_expert + rows * of_row, whole, {"float8_e4m3fn": 2 * rows * n * k}
    )
