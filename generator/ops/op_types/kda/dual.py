"""Kimi delta attention without its recurrence: the updates solve a triangular system."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch

# tokens of one system; states carry over from one to the next
_CHUNK = 32


def spans(inputs: Mapping[str, Any]) -> list[slice]:
    """Return the tokens of each sequence; in a decode step each has one."""
    if "cu_seqlens" not in inputs:
        return [slice(row, row + 1) for row in range(len(inputs["q"]))]
    return [slice(*ends) for ends in pairwise(inputs["cu_seqlens"].tolist())]


def solved(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_g: torch.Tensor,
    beta: torch.Tensor,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one sequence's outputs and its last state.

    q, k, v and the logarithms of the gates are float64 [T, heads, length], beta is [T,
    heads], the state [heads, values, keys]. Of a chunk, with G the sum of log_g up to a
    token, the update of token t is beta_t (v_t - S (e^G_t k_t) - sum over i < t of
    (k_i · e^(G_t - G_i) k_t) update_i).
    """
    outputs = [v[:0]]
    for start in range(0, len(q), _CHUNK):
        part = slice(start, start + _CHUNK)
        queries, keys, values = (x[part].transpose(0, 1) for x in (q, k, v))
        total = log_g[part].transpose(0, 1).cumsum(1)  # [heads, T, keys]
        since = total[:, :, None] - total[:, None]
        past = torch.ones(since.shape[1:3], dtype=torch.bool, device=q.device).tril()
        # the future is masked before exp overflows
        between = since.masked_fill(~past[:, :, None], -torch.inf).exp()
        by_key = torch.einsum("htk,htik,hik->hti", keys, between, keys)
        by_query = torch.einsum("htk,htik,hik->hti", queries, between, keys)
        decay, share = total.exp(), beta[part].T[..., None]
        recalled = (decay * keys) @ state.mT
        updates = torch.linalg.solve_triangular(
            (share * by_key).tril(-1),
            share * (values - recalled),
            upper=False,
            unitriangular=True,
        )
        read = (decay * queries) @ state.mT + by_query @ updates
        outputs.append(read.transpose(0, 1))
        left = between[:, -1] * keys  # what is left of each key behind the last token
        state = decay[:, -1:] * state + updates.mT @ left
    return torch.cat(outputs), state
