"""Attention under any mask in float64, and the masks that blocks stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from kernel_judge.definition import Definition


def is_variable(definition: Definition) -> bool:
    """Return whether blocks have sizes of their own, and heads their own blocks."""
    return "block_mask" in definition.interface.inputs


def block_mask(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return which blocks of keys each block of queries sees: bool [rows, columns]."""
    starts, columns = inputs["indptr"], inputs["indices"].long()
    rows = torch.arange(len(starts) - 1, device=starts.device)
    mask = torch.zeros(len(rows), len(inputs["k"]), dtype=torch.bool)
    mask[rows.repeat_interleave(starts.diff().long()).cpu(), columns.cpu()] = True
    return mask.to(starts.device)


def visible(definition: Definition, inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return which keys each query sees: bool [kv_heads or 1, queries, keys]."""
    if is_variable(definition):
        parts = [
            mask.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
            for mask, rows, columns in zip(
                inputs["block_mask"],
                inputs["block_row_sz"].long(),
                inputs["block_col_sz"].long(),
                strict=True,
            )
        ]
        return torch.stack(parts)
    rows, columns = inputs["q"].shape[1], inputs["k"].shape[1]
    seen = block_mask(inputs).repeat_interleave(rows, 0).repeat_interleave(columns, 1)
    if "mask" in inputs:
        starts = inputs["indptr"].tolist()
        for row in range(len(starts) - 1):
            for place in range(starts[row], starts[row + 1]):
                first = int(inputs["indices"][place]) * columns
                queries = slice(row * rows, (row + 1) * rows)
                seen[queries, first : first + columns] = inputs["mask"][place]
    return seen[None]


def dense_attention(
    definition: Definition, inputs: Mapping[str, Any], seen: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and its base-2 LSE, in float64.

    `seen` is bool [kv_heads or 1, queries, keys]. A query that sees no key gets 0 and
    -inf.
    """
    q, k, v = (_by_head(definition, inputs[name]) for name in ("q", "k", "v"))
    output = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float64, device=q.device)
    ratio = len(q) // len(k)
    for head in range(len(q)):
        group = head // ratio
        hidden = ~seen[min(group, len(seen) - 1)]
        logits = q[head].double() @ k[group].double().T * inputs["sm_scale"]
        bits = (logits / math.log(2.0)).masked_fill(hidden, -math.inf)
        lse[head] = torch.logsumexp(bits * math.log(2.0), dim=1) / math.log(2.0)
        weights = torch.exp2(bits - lse[head][:, None]).nan_to_num(0.0)
        output[head] = weights @ v[group].double()
    if is_variable(definition):
        return output, lse
    shape = inputs["q"].shape
    return output.transpose(0, 1).reshape(shape), lse.T.reshape(shape[:3])


def _by_head(definition: Definition, value: torch.Tensor) -> torch.Tensor:
    """Return queries, keys or values as [heads, tokens, d]."""
    if is_variable(definition):
        return value
    return value.flatten(0, 1).transpose(0, 1)
