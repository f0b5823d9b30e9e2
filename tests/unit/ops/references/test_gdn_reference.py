"""The gdn references against loops over single numbers."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

from generator.ops.reference_text import reference_text
from tests.builders import run_of

HEADS, SIZE = 2, 3
gdn_decode, gdn_mtp, gdn_prefill = (
    run_of(str(reference_text("gdn", f"gdn_{stage}")))
    for stage in ("decode", "mtp", "prefill")
)


def drawn(*shape, seed, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def made(*rows, ratio=2, seed=1):
    """Return q, k, v and the gates of tokens: v heads share k heads, two and two."""
    v_heads = HEADS * ratio
    keys = torch.nn.functional.normalize(drawn(*rows, HEADS, SIZE, seed=seed).float())
    tokens = {
        "q": drawn(*rows, HEADS, SIZE, seed=seed + 1),
        "k": keys.bfloat16(),
        "v": drawn(*rows, v_heads, SIZE, seed=seed + 2),
    }
    gates = {
        "A_log": drawn(v_heads, seed=seed + 3, dtype=torch.float32),
        "a": drawn(*rows, v_heads, seed=seed + 4),
        "dt_bias": drawn(v_heads, seed=seed + 5, dtype=torch.float32),
        "b": drawn(*rows, v_heads, seed=seed + 6),
    }
    return tokens, gates


def states(count, v_heads, seed=9):
    return drawn(count, v_heads, SIZE, SIZE, seed=seed, dtype=torch.float32)


def by_hand(tokens, gates, state, scale):
    """Return outputs, and the states after each token, of one sequence [T, ...]."""
    q, k, v, a, b, A_log, dt_bias = (
        values.double().tolist()
        for values in (
            *tokens.values(),
            *(gates[n] for n in ["a", "b", "A_log", "dt_bias"]),
        )
    )
    memory = state.double().tolist()
    ratio, outputs, after = len(v[0]) // len(k[0]), [], []
    for t in range(len(v)):
        output = []
        for h in range(len(v[t])):
            key, query = k[t][h // ratio], q[t][h // ratio]
            step = math.log1p(math.exp(a[t][h] + dt_bias[h]))
            g = math.exp(-math.exp(A_log[h]) * step)
            beta = 1 / (1 + math.exp(-b[t][h]))
            read = []
            for i in range(SIZE):
                row = [g * x for x in memory[h][i]]
                recalled = sum(x * y for x, y in zip(row, key, strict=True))
                # as the rule is often written: remove what was there, add what is new
                new = beta * v[t][h][i] + (1 - beta) * recalled
                row = [
                    x - y * recalled + y * new for x, y in zip(row, key, strict=True)
                ]
                memory[h][i] = row
                read.append(scale * sum(x * y for x, y in zip(row, query, strict=True)))
            output.append(read)
        outputs.append(output)
        after.append([[list(row) for row in head] for head in memory])
    return torch.tensor(outputs), torch.tensor(after)


def close(actual, expected, bf16=True):
    assert actual.dtype == (torch.bfloat16 if bf16 else torch.float32)
    bounds = {"rtol": 2**-8, "atol": 1e-5} if bf16 else {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(actual.float(), expected.float(), **bounds)


@pytest.mark.parametrize("ratio", [1, 2, 3])
@pytest.mark.parametrize("scale", [0.3, None, 0.0])
@pytest.mark.parametrize("empty", [False, True])
def test_decode_agrees_with_the_loops(ratio, scale, empty):
    tokens, gates = made(3, 1, ratio=ratio)
    before = torch.zeros(3, HEADS * ratio, SIZE, SIZE)
    if not empty:
        before = states(3, HEADS * ratio)
    output, after = gdn_decode(
        *tokens.values(), None if empty else before, *gates.values(), scale
    )
    for row in range(3):
        one = [rows(part, row) for part in (tokens, gates)]
        expected = by_hand(*one, before[row], scale or SIZE**-0.5)
        close(output[row], expected[0])
        close(after[row], expected[1][-1], bf16=False)


def rows(values, index):
    """Return the values of some rows; those that are one a head are of all rows."""
    return {n: x if n in ("A_log", "dt_bias") else x[index] for n, x in values.items()}


@pytest.mark.parametrize("ratio", [1, 2])
def test_mtp_fills_the_buffer_row_by_row_and_leaves_the_pool(ratio):
    tokens, gates = made(2, 4, ratio=ratio)
    pool, slots = states(5, HEADS * ratio), torch.tensor([4, 1], dtype=torch.int32)
    buffer = torch.full((5, 4, HEADS * ratio, SIZE, SIZE), 7.0)
    given = [*tokens.values(), pool, slots, *gates.values(), None]
    output, final = gdn_mtp(*given, buffer)
    for row, slot in enumerate(slots.tolist()):
        one = [rows(part, row) for part in (tokens, gates)]
        expected = by_hand(*one, pool[slot], SIZE**-0.5)
        close(output[row], expected[0])
        close(buffer[row], expected[1], bf16=False)
    assert (buffer[2:] == 7).all()
    assert torch.equal(final, pool)
    assert final.data_ptr() != pool.data_ptr()
    # without a buffer the same
    assert torch.equal(gdn_mtp(*given, None)[0], output)
    assert torch.equal(gdn_mtp(*given)[0], output)


@pytest.mark.parametrize("lengths", [[5], [2, 0, 3, 1], [0, 1], [0], [0, 0]])
@pytest.mark.parametrize("empty", [False, True])
def test_prefill_agrees_with_the_loops(lengths, empty):
    tokens, gates = made(sum(lengths))
    count = len(lengths)
    before = torch.zeros(count, 4, SIZE, SIZE) if empty else states(count, 4)
    ends = torch.tensor([0, *lengths]).cumsum(0)
    given = [*tokens.values(), None if empty else before, *gates.values(), ends]
    kept = before.clone()
    output, after = gdn_prefill(*given, 0.3)
    assert torch.equal(before, kept)
    assert output.shape == tokens["v"].shape
    for row, (start, end) in enumerate(pairwise(ends.tolist())):
        if start == end:
            assert torch.equal(after[row], before[row])
            continue
        one = [rows(part, slice(start, end)) for part in (tokens, gates)]
        expected = by_hand(*one, before[row], 0.3)
        close(output[start:end], expected[0])
        close(after[row], expected[1][-1], bf16=False)


def test_a_key_that_comes_again_recalls_what_was_written():
    """With beta 1 and no decay the second value replaces the first."""
    key = torch.tensor([0.6, 0.8, 0.0]).bfloat16().expand(2, 1, 3)
    value = torch.tensor([[[1.0, 2.0, 3.0]], [[-4.0, 5.0, 0.5]]]).bfloat16()
    ones = torch.ones(2, 1)
    output, _ = gdn_prefill(
        key,
        key,
        value,
        None,
        torch.tensor([-60.0]),
        ones,
        torch.zeros(1),
        60 * ones,
        torch.tensor([0, 2]),
        1.0,
    )
    torch.testing.assert_close(output, value, rtol=2e-2, atol=0.0)


def unit(x):
    wide = x.double()
    return (wide / (wide.square().sum(-1, keepdim=True) + 1e-6).sqrt()).float()


@pytest.mark.parametrize("length", [1.0, 1e-3])
@pytest.mark.parametrize("stage", ["decode", "mtp", "prefill"])
def test_l2norm_is_the_rule_on_vectors_of_length_one(stage, length):
    """Of a length of 1e-3 the square is the 1e-6 that stands beside it."""
    rows = {"decode": (3, 1), "mtp": (3, 2), "prefill": (3,)}[stage]
    tokens, gates = made(*rows)
    tokens["k"] = drawn(*tokens["k"].shape, seed=7)
    tokens = {**tokens, **{n: (tokens[n] * length).bfloat16() for n in ("q", "k")}}
    before = {
        "decode": [states(3, 4)],
        "mtp": [states(3, 4), torch.tensor([2, 0, 1], dtype=torch.int32)],
        "prefill": [states(2, 4)],
    }[stage]
    behind = [torch.tensor([0, 1, 3])] if stage == "prefill" else []
    plain, normalised = (
        run_of(str(reference_text("gdn", f"gdn_{stage}", words)))
        for words in ((), ("l2norm",))
    )
    given = [*before, *gates.values(), *behind, 0.5]
    q, k, v = tokens.values()
    expected = plain(unit(q), unit(k), v, *given)
    for one, other in zip(normalised(q, k, v, *given), expected, strict=True):
        torch.testing.assert_close(one.float(), other.float(), rtol=1e-2, atol=1e-5)
    assert not torch.allclose(
        normalised(q, k, v, *given)[0].float(), plain(q, k, v, *given)[0].float(), 0.02
    )
