"""The gated delta rule: unit vectors, gates, states, and a chunked solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from kernel_judge.inputs.seeded_inputs import Stream

CHUNK = 64
L2_EPS = 1e-6
"""Beside the sum of squares, where kernels divide queries and keys by their length."""
# unit vectors are quotients of integers; steps in a standard deviation
_STEPS = 1024.0


class Solved(NamedTuple):
    """The outputs [T, heads, values] and the last state [heads, values, keys]."""

    output: torch.Tensor
    state: torch.Tensor


def unit_rows(stream: Stream, shape: Sequence[int]) -> torch.Tensor:
    """Return vectors of length 1 along the last axis, rounded to bfloat16.

    The bits are the same on every machine: sums of squared integers are exact in any
    order, and IEEE 754 fixes the square root and the quotient.
    """
    whole = (stream.values(shape) * _STEPS).round().to(torch.int64)
    squares = whole.square().sum(-1, keepdim=True).clamp_min(1)
    return (whole.double() / squares.double().sqrt()).to(torch.bfloat16)


def any_rows(stream: Stream, shape: Sequence[int]) -> torch.Tensor:
    """Return bfloat16 vectors of different lengths along the last axis, seldom 1."""
    lengths = 0.25 + stream.child("lengths").values((*shape[:-1], 1)).abs()
    return (stream.values(shape) * lengths).to(torch.bfloat16)


def log_decay(
    A_log: torch.Tensor, a: torch.Tensor, dt_bias: torch.Tensor
) -> torch.Tensor:
    """Return ln g = -exp(A_log) · ln(1 + e^(a + dt_bias)), of shape and dtype of `a`.

    A_log and dt_bias are [num_v_heads], a [..., num_v_heads].
    """
    raw = a + dt_bias
    return -A_log.exp() * torch.logaddexp(raw, torch.zeros_like(raw))


def gates(inputs: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ln g and beta, float32 [..., num_v_heads], as models compute them."""
    names = ("A_log", "a", "dt_bias", "b")
    A_log, a, dt_bias, b = (inputs[name].float() for name in names)
    return log_decay(A_log, a, dt_bias).contiguous(), b.sigmoid().contiguous()


def sequences(inputs: Mapping[str, Any]) -> list[Any]:
    """Return the index of each sequence in q: a slice of tokens, or a row."""
    if "cu_seqlens" not in inputs:
        return list(range(len(inputs["q"])))
    ends = inputs["cu_seqlens"].tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def states_before(inputs: Mapping[str, Any]) -> torch.Tensor:
    """Return a copy of each sequence's initial state, zeros if it has none.

    float32 [sequences, num_v_heads, values, keys].
    """
    if "initial_state" in inputs:
        pool: torch.Tensor = inputs["initial_state"]
        return pool[inputs["initial_state_indices"].long()]
    state: torch.Tensor | None = inputs["state"]
    if state is not None:
        return state.clone()
    heads, size = inputs["v"].shape[-2:]
    rows = len(sequences(inputs))
    return torch.zeros((rows, heads, size, size), device=inputs["v"].device)


def occupied(ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cu_seqlens, int64 [n + 1], without empty sequences, and the kept rows [n].

    SGLang 0.5.23 numbers sequences by counting first chunks (`prepare_chunk_indices`).
    An empty sequence has no chunk, so later tokens would get the state of the sequence
    before theirs.
    """
    rows = (ends[1:] > ends[:-1]).nonzero().squeeze(1)
    return torch.cat([ends[:1], ends[rows + 1]]), rows


def solve(
    sequence: Sequence[torch.Tensor], state: torch.Tensor, chunk: int = CHUNK
) -> Solved:
    """Return one sequence's outputs, not yet scaled, and its last state.

    `sequence` holds q, k, v [T, heads, length], ln g and beta [T, heads]; `state` is
    [heads, values, keys]. The updates of a chunk follow from a triangular system (Yang
    et al. 2024, Gated Delta Networks, section 3.3).
    """
    outputs = [sequence[2][:0]]
    for start in range(0, len(sequence[0]), chunk):
        part = [tensor[start : start + chunk].transpose(0, 1) for tensor in sequence]
        output, state = _solve_chunk(part, state)
        outputs.append(output.transpose(0, 1))
    return Solved(torch.cat(outputs), state)


def _solve_chunk(part: Sequence[torch.Tensor], state: torch.Tensor) -> Solved:
    """Return a chunk's outputs [heads, T, values] and the state after it."""
    q, k, v, log_g, beta = part
    total = log_g.cumsum(-1)  # [heads, T]: ln of the decay since the chunk began
    since = total[:, :, None] - total[:, None, :]
    past = torch.ones_like(since, dtype=torch.bool).tril()
    # decay from token i to a later token t; mask the future before exp overflows
    between = since.masked_fill(~past, -torch.inf).exp()
    decay = total.exp()[..., None]
    # u_t = beta_t (v_t - decay_t S k_t - sum over i < t of between_ti (k_t·k_i) u_i)
    system = beta[..., None] * between * (k @ k.transpose(1, 2))
    right = beta[..., None] * (v - decay * (k @ state.transpose(1, 2)))
    added = torch.linalg.solve_triangular(
        system.tril(-1), right, upper=False, unitriangular=True
    )
    output = decay * (q @ state.transpose(1, 2))
    output = output + (between * (q @ k.transpose(1, 2))) @ added
    left = between[:, -1, :, None]
    after = decay[:, -1:] * state + (left * added).transpose(1, 2) @ k
    return Solved(output, after)
