"""The rows of an output that a kernel defines."""

from __future__ import annotations

from typing import Any

import torch

from kernel_judge.definition import TensorSpec


def leading_axis(spec: TensorSpec) -> str | None:
    """Return the axis that a tensor's rows count: only outputs over it share rows."""
    return spec.shape[0] if spec.shape else None


def keep_rows(value: Any, rows: torch.Tensor) -> Any:
    """Return those rows of an output: [kept, ...] of [rows, ...], its dtype kept.

    `rows` is bool [rows]. What has another shape is left for `compare`.
    """
    if not isinstance(value, torch.Tensor) or value.shape[:1] != rows.shape:
        return value
    return value[rows.to(value.device)]
