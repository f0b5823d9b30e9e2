"""The rope reference against angles and a loop over single dimensions."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.reference_text import reference_text
from tests.builders import run_of

run = run_of(str(reference_text("rope", "rope_with_cos_sin_cache", ("neox",))))

HEAD, ROTARY, ROWS = 10, 6, 40
POSITIONS = torch.tensor([0, 39, 7, 7, 1])


def angle(position: int, pair: int) -> float:
    return position * 50.0 ** (-2 * pair / ROTARY)


def cache() -> torch.Tensor:
    rows = [[angle(p, i) for i in range(ROTARY // 2)] for p in range(ROWS)]
    angles = torch.tensor(rows, dtype=torch.float64)
    return torch.cat([angles.cos(), angles.sin()], dim=1).float()


def heads(count: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(POSITIONS), count, HEAD, generator=generator).to(dtype)


def by_hand(x: torch.Tensor) -> torch.Tensor:
    """Turn each pair of dimensions in the plane."""
    out = x.double().clone()
    for t, position in enumerate(POSITIONS.tolist()):
        for h in range(x.shape[1]):
            for i in range(ROTARY // 2):
                a, b = (x[t, h, j].item() for j in (i, i + ROTARY // 2))
                c, s = math.cos(angle(position, i)), math.sin(angle(position, i))
                out[t, h, i] = a * c - b * s
                out[t, h, i + ROTARY // 2] = b * c + a * s
    return out


@pytest.mark.parametrize(
    ("dtype", "rtol", "atol"),
    [(torch.float32, 1e-6, 1e-6), (torch.bfloat16, 2**-8, 1e-6)],
)
def test_pairs_turn_by_the_angle_of_their_position(dtype, rtol, atol):
    q, k = heads(3, dtype, 1), heads(1, dtype, 2)
    for x, turned in zip((q, k), run(q, k, cache(), POSITIONS), strict=True):
        assert turned.dtype == dtype
        torch.testing.assert_close(turned.double(), by_hand(x), rtol=rtol, atol=atol)
        # what does not turn keeps its bits
        assert torch.equal(turned[..., ROTARY:], x[..., ROTARY:])


def test_position_zero_keeps_everything():
    q, k = heads(2, torch.bfloat16, 3), heads(2, torch.bfloat16, 4)
    q_out, k_out = run(q, k, cache(), torch.zeros(len(POSITIONS), dtype=torch.int64))
    assert torch.equal(q_out, q)
    assert torch.equal(k_out, k)


def test_scores_depend_on_distances_alone():
    q, k = heads(1, torch.float32, 5), heads(1, torch.float32, 6)

    def scores(shift: int) -> torch.Tensor:
        at = torch.arange(len(POSITIONS)) + shift
        q_out, k_out = run(q, k, cache(), at)
        return q_out[:, 0] @ k_out[:, 0].T

    torch.testing.assert_close(scores(0), scores(30), rtol=1e-4, atol=1e-4)


def test_a_head_may_turn_as_a_whole():
    q, k = heads(2, torch.float32, 7), heads(2, torch.float32, 8)
    whole = run(q[..., :ROTARY], k[..., :ROTARY], cache(), POSITIONS)
    part = run(q, k, cache(), POSITIONS)
    assert all(
        torch.equal(a, b[..., :ROTARY]) for a, b in zip(whole, part, strict=True)
    )


def test_no_tokens_give_no_rows():
    none = torch.zeros(0, 2, HEAD).bfloat16()
    q_out, k_out = run(none, none[:, :1], cache(), torch.zeros(0, dtype=torch.int64))
    assert q_out.shape == (0, 2, HEAD)
    assert k_out.shape == (0, 1, HEAD)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inputs_are_left_alone(dtype):
    inputs = [heads(2, dtype, 9), heads(1, dtype, 10), cache(), POSITIONS.clone()]
    before = [x.clone() for x in inputs]
    outputs = run(*inputs)
    outputs[0].zero_()
    assert all(torch.equal(*pair) for pair in zip(inputs, before, strict=True))
