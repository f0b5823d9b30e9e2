"""The mamba_ssu reference against loops over single states with Python floats."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.op_types.mamba_ssu.references.mamba_ssu_decode import run

HEADS, DIM, DSTATE, GROUPS, POOL = 6, 3, 4, 2, 8
SLOTS = [5, -1, 0, 7, -1]


def batch(slots=SLOTS, dtype=torch.float32, heads=HEADS, groups=GROUPS, seed=1):
    """Return inputs whose steps, rates and biases differ within a head as well."""
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    rows = len(slots)
    return [
        drawn(POOL, heads, DIM, DSTATE),
        drawn(rows, heads, DIM),
        drawn(rows, heads, DIM),
        -torch.rand(heads, DIM, DSTATE, generator=generator) - 0.1,
        drawn(rows, groups, DSTATE),
        drawn(rows, groups, DSTATE),
        drawn(heads, DIM),
        drawn(heads, DIM),
        torch.tensor(slots, dtype=torch.int32),
    ]


def by_hand(state, x, dt, A, B, C, D, dt_bias, slots):
    wide = [t.double().tolist() for t in (x, dt, A, B, C, D, dt_bias)]
    x, dt, A, B, C, D, dt_bias = wide
    pool = state.double().clone()
    heads, dim, dstate = pool.shape[1:]
    output = torch.zeros(len(slots), heads, dim, dtype=torch.float64)
    for r, slot in enumerate(slots.tolist()):
        if slot == -1:
            continue
        for h in range(heads):
            g = h // (heads // len(B[r]))
            for d in range(dim):
                step = math.log1p(math.exp(dt[r][h][d] + dt_bias[h][d]))
                total = D[h][d] * x[r][h][d]
                for s in range(dstate):
                    kept = pool[slot, h, d, s].item() * math.exp(A[h][d][s] * step)
                    new = kept + step * B[r][g][s] * x[r][h][d]
                    pool[slot, h, d, s] = new
                    total += new * C[r][g][s]
                output[r, h, d] = total
    return output, pool


@pytest.mark.parametrize(("heads", "groups"), [(6, 1), (6, 2), (6, 6), (1, 1)])
def test_every_grouping_agrees_with_the_loops(heads, groups):
    inputs = batch(heads=heads, groups=groups)
    for actual, expected in zip(run(*inputs), by_hand(*inputs), strict=True):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-5)


def test_bfloat16_is_rounded_once():
    inputs = batch(dtype=torch.bfloat16)
    for actual, expected in zip(run(*inputs), by_hand(*inputs), strict=True):
        assert actual.dtype == torch.bfloat16
        torch.testing.assert_close(actual.double(), expected, rtol=2**-8, atol=1e-6)


def test_padding_and_unused_slots_are_left_as_they_were():
    inputs = batch(dtype=torch.bfloat16)
    output, new_state = run(*inputs)
    assert (output[[1, 4]] == 0).all()
    unused = sorted(set(range(POOL)) - set(SLOTS))
    assert torch.equal(new_state[unused], inputs[0][unused])
    assert not torch.equal(new_state[7], inputs[0][7])


@pytest.mark.parametrize("slots", [[], [-1], [-1, -1, -1]])
def test_nothing_but_padding_changes_nothing(slots):
    inputs = batch(slots)
    output, new_state = run(*inputs)
    assert output.shape == (len(slots), HEADS, DIM)
    assert (output == 0).all()
    assert torch.equal(new_state, inputs[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inputs_are_left_alone(dtype):
    inputs = batch(dtype=dtype)
    before = [x.clone() for x in inputs]
    _, new_state = run(*inputs)
    new_state.zero_()
    assert all(torch.equal(*pair) for pair in zip(inputs, before, strict=True))


def test_steps_far_from_zero_stay_finite():
    inputs = batch()
    inputs[2][0] = 100.0
    inputs[2][2] = -100.0
    output, new_state = run(*inputs)
    assert output.isfinite().all()
    assert new_state.isfinite().all()
    # a step of nothing keeps the state
    assert torch.equal(new_state[0], inputs[0][0])
