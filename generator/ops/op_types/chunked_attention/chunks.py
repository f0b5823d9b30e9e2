"""Attention of one sequence within chunks, in float64."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.attention.oracle import oracle_attention
from kernel_judge.definition import Definition


def chunk_of(definition: Definition) -> int:
    """Return the positions of a chunk, from the definition's name."""
    return int(definition.constants["attention_chunk_size"])


def chunked_attention(
    inputs: Mapping[str, Any], chunk: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention and LSE of a batch within chunks, in float64.

    q [total_q, heads, d], k and v [total_kv, kv_heads, d] → output [total_q, heads, d],
    LSE [total_q, heads]. A query in front of the first key sees none: 0 and -inf.
    """
    q = inputs["q"]
    output = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float64, device=q.device)
    queries, keys = inputs["qo_indptr"].tolist(), inputs["kv_indptr"].tolist()
    for b in range(len(keys) - 1):
        kv_len = keys[b + 1] - keys[b]
        # the row of the query that stands at the first key
        origin = queries[b + 1] - kv_len
        for start in range(0, kv_len, chunk):
            end = min(start + chunk, kv_len)
            rows = slice(max(origin + start, queries[b]), origin + end)
            if rows.start < rows.stop:
                columns = slice(keys[b] + start, keys[b] + end)
                output[rows], lse[rows] = oracle_attention(
                    q[rows],
                    inputs["k"][columns],
                    inputs["v"][columns],
                    inputs["sm_scale"],
                )
    return output, lse
