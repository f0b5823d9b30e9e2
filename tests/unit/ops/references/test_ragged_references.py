"""The ragged attention references against loops over single keys in float64."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
import torch

from generator.ops.op_types.mla_ragged.references import mla_ragged_prefill
from tests.builders import REFERENCES, run_of

SM_SCALE = 0.37
# (queries, keys) of each sequence: no keys, no queries, neither, more queries than
# keys, the first and the last being ordinary.
RAGGED = [(3, 7), (2, 0), (0, 5), (5, 2), (1, 1), (0, 0), (4, 4), (2, 8), (3, 9)]


def brute_force(lengths, q, k, v):
    """Attend with every query head on its own, every dot product written out."""
    q64, k64, v64 = (tensor.double().tolist() for tensor in (q, k, v))
    ratio = q.shape[1] // k.shape[1]
    output = torch.zeros(*q.shape[:2], v.shape[2], dtype=torch.float64)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float64)
    row = first = 0
    for q_len, kv_len in lengths:
        for i in range(q_len):
            seen = range(first, first + max(0, kv_len - q_len + i + 1))
            for head in range(q.shape[1]):
                kv_head = head // ratio
                powers = [
                    math.exp(SM_SCALE * math.fsum(map(mul, q64[row][head], key)))
                    for key in (k64[j][kv_head] for j in seen)
                ]
                total = math.fsum(powers)
                if not powers:
                    continue
                lse[row, head] = math.log2(total)
                for power, j in zip(powers, seen, strict=True):
                    value = torch.tensor(v64[j][kv_head], dtype=torch.float64)
                    output[row, head] += power / total * value
            row += 1
        first += kv_len
    return output, lse


def mul(a: float, b: float) -> float:
    return a * b


def batch(lengths, heads, kv_heads, dim, vo_dim, dtype=torch.float32):
    """Return the inputs of a batch in the order of the interface."""
    generator = torch.Generator().manual_seed(3)
    total_q, total_kv = (sum(pair[i] for pair in lengths) for i in (0, 1))
    shapes = [
        (total_q, heads, dim),
        (total_kv, kv_heads, dim),
        (total_kv, kv_heads, vo_dim),
    ]
    tensors = [torch.randn(*s, generator=generator).to(dtype) for s in shapes]
    starts = [
        torch.tensor([0, *accumulate(pair[i] for pair in lengths)], dtype=torch.int32)
        for i in (0, 1)
    ]
    return [*tensors, *starts, SM_SCALE]


def gqa(lengths, ratio=3, dtype=torch.float32):
    run = run_of(REFERENCES["gqa_ragged_prefill"])
    return run, batch(lengths, 2 * ratio, 2, 6, 6, dtype)


def mla(lengths, heads=3, dtype=torch.float32):
    return mla_ragged_prefill.run, batch(lengths, heads, heads, 9, 6, dtype)


FAMILIES = pytest.mark.parametrize("family", [gqa, mla])


def assert_agrees(run, inputs, lengths, *, rtol=1e-5, atol=1e-5):
    output, lse = run(*inputs)
    expected = brute_force(lengths, *inputs[:3])
    assert output.dtype == inputs[0].dtype
    assert lse.dtype == torch.float32
    torch.testing.assert_close(output.double(), expected[0], rtol=rtol, atol=atol)
    torch.testing.assert_close(lse.double(), expected[1], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ratio", [1, 2, 3, 5, 6, 8])
def test_gqa_agrees(ratio):
    assert_agrees(*gqa(RAGGED, ratio), RAGGED)


@pytest.mark.parametrize("heads", [1, 8, 16])
def test_mla_agrees(heads):
    assert_agrees(*mla(RAGGED, heads), RAGGED)


@FAMILIES
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_inputs_are_left_alone(family, dtype):
    # Where .float() hands back the input itself, an in-place step would show.
    run, inputs = family(RAGGED, 4, dtype)
    before = [x.clone() for x in inputs[:-1]]
    rtol, atol = (1e-2, 1e-6) if dtype == torch.bfloat16 else (1e-5, 1e-5)
    assert_agrees(run, inputs, RAGGED, rtol=rtol, atol=atol)
    assert all(torch.equal(*pair) for pair in zip(inputs[:-1], before, strict=True))


@FAMILIES
def test_rows_without_a_key_are_zero_and_minus_infinity(family):
    run, inputs = family([(4, 1), (2, 0)])
    output, lse = run(*inputs)
    unseen = torch.tensor([True, True, True, False, True, True])
    assert (output[unseen] == 0).all()
    assert (lse[unseen] == -math.inf).all()
    assert lse[3].isfinite().all()


@FAMILIES
@pytest.mark.parametrize("lengths", [[], [(0, 0)], [(0, 3)]])
def test_a_batch_without_queries_gives_no_rows(family, lengths):
    run, inputs = family(lengths)
    output, lse = run(*inputs)
    assert output.shape == (0, inputs[0].shape[1], inputs[2].shape[2])
    assert lse.shape == (0, inputs[0].shape[1])


@FAMILIES
def test_lse_is_base_two(family):
    # With queries of zero all logits are 0: the LSE is the log of the count.
    run, inputs = family([(1, 8)])
    inputs[0].zero_()
    assert torch.allclose(run(*inputs)[1], torch.tensor(3.0))


@FAMILIES
def test_extreme_logits_stay_finite(family):
    run, inputs = family([(3, 8)])
    output, lse = run(*inputs[:-1], 1e5)
    assert output.isfinite().all()
    assert lse.isfinite().all()
