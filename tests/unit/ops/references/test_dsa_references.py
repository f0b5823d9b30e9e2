"""The dsa_paged references against loops over single elements with Python floats."""

from __future__ import annotations

import math
import random
import struct

import pytest
import torch

from generator.ops.op_types.dsa_paged.references import (
    dsa_sparse_attention,
    dsa_topk_indexer_fp8,
)

HEADS, CKV, KPE, PAGE = 2, 4, 2, 3
INDEX_HEADS, DIM = 3, 8


def attention_batch(rows, pages=4, dtype=torch.float32):
    """Return inputs of sparse attention for lists of token indices."""
    generator = torch.Generator().manual_seed(3)

    def drawn(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    return [
        drawn(len(rows), HEADS, CKV),
        drawn(len(rows), HEADS, KPE),
        drawn(pages, PAGE, CKV),
        drawn(pages, PAGE, KPE),
        torch.tensor(rows, dtype=torch.int32),
        0.7,
    ]


def attended_by_hand(q_nope, q_pe, ckv, kpe, indices, scale):
    wide = [tensor.double().tolist() for tensor in (q_nope, q_pe, ckv, kpe)]
    q_nope, q_pe, ckv, kpe = wide
    output, lse = [], []
    for t, row in enumerate(indices.tolist()):
        for h in range(HEADS):
            total, mixed = 0.0, [0.0] * CKV
            for index in row:
                if index == -1:
                    continue
                page, offset = divmod(index, PAGE)
                key = ckv[page][offset] + kpe[page][offset]
                query = q_nope[t][h] + q_pe[t][h]
                dot = sum(a * b for a, b in zip(query, key, strict=True))
                weight = math.exp(dot * scale)
                total += weight
                for d in range(CKV):
                    mixed[d] += weight * ckv[page][offset][d]
            output.append([x / total if total else 0.0 for x in mixed])
            lse.append(math.log2(total) if total else -math.inf)
    shape = (len(indices), HEADS)
    output = torch.tensor(output, dtype=torch.float64).view(*shape, CKV)
    return output, torch.tensor(lse, dtype=torch.float64).view(shape)


LISTS = [
    [[0, 11, 5, 4], [7, -1, -1, -1]],
    [[-1, 3, -1, 9], [2, 2, -1, -1], [-1, -1, -1, -1]],
]


@pytest.mark.parametrize("rows", LISTS)
def test_attention_agrees_with_the_loops(rows):
    inputs = attention_batch(rows)
    found = dsa_sparse_attention.run(*inputs)
    for actual, expected in zip(found, attended_by_hand(*inputs), strict=True):
        assert actual.dtype == torch.float32
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=1e-6)


def test_attention_leaves_its_inputs_alone():
    inputs = attention_batch(LISTS[1], dtype=torch.bfloat16)
    before = [x.clone() for x in inputs[:-1]]
    output, lse = dsa_sparse_attention.run(*inputs)
    assert output.dtype == torch.bfloat16
    assert lse.dtype == torch.float32
    assert (output[2] == 0).all()
    assert (lse[2] == -math.inf).all()
    assert all(torch.equal(*pair) for pair in zip(inputs[:-1], before, strict=True))


def fp8(byte):
    """Return the number that a byte of float8_e4m3fn means; 0x7f is NaN."""
    sign = -1.0 if byte & 0x80 else 1.0
    exponent, fraction = byte >> 3 & 15, byte & 7
    if exponent == 0:
        return sign * fraction * 2.0**-9
    return sign * (1 + fraction / 8) * 2.0 ** (exponent - 7)


def indexer_batch(lens, table, pages=6, seed=1):
    """Return inputs of the indexer with pages of four tokens, and their bytes."""
    rng = random.Random(seed)

    def byte():
        return rng.randrange(0x68) | rng.choice((0, 0x80))

    content = []
    for _ in range(pages):
        keys = bytes(byte() for _ in range(4 * DIM))
        content.append(
            keys + struct.pack("<4f", *(rng.uniform(0.1, 3) for _ in "abcd"))
        )
    cache = torch.frombuffer(bytearray(b"".join(content)), dtype=torch.int8)
    q = bytes(byte() for _ in range(len(lens) * INDEX_HEADS * DIM))
    queries = torch.frombuffer(bytearray(q), dtype=torch.uint8)
    weights = [rng.uniform(-1, 2) for _ in range(len(lens) * INDEX_HEADS)]
    inputs = [
        queries.view(torch.float8_e4m3fn).view(len(lens), INDEX_HEADS, DIM),
        cache.view(pages, 4, 1, DIM + 4),
        torch.tensor(weights).view(len(lens), INDEX_HEADS),
        torch.tensor(lens, dtype=torch.int32),
        torch.tensor(table, dtype=torch.int32),
    ]
    return inputs, content, q


def scored_by_hand(inputs, content, q):
    """Return every row's scores by index."""
    rows = []
    weights, table = inputs[2].double().tolist(), inputs[4].tolist()
    for b, length in enumerate(inputs[3].tolist()):
        scored = {}
        for token in range(length):
            page = table[b][token // 4]
            key = content[page][token % 4 * DIM :][:DIM]
            (scale,) = struct.unpack_from("<f", content[page], 4 * DIM + token % 4 * 4)
            score = 0.0
            for h in range(INDEX_HEADS):
                query = q[(b * INDEX_HEADS + h) * DIM :][:DIM]
                dot = sum(fp8(x) * fp8(y) for x, y in zip(query, key, strict=True))
                score += weights[b][h] * max(dot, 0.0)
            scored[page * 4 + token % 4] = score * scale
        rows.append(scored)
    return rows


TABLE = [[5, 0, 3], [1, 4, 2], [2, 2, 2]]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("topk", [1, 3, 7, 40])
def test_the_indexer_agrees_with_the_loops(topk, seed, monkeypatch):
    monkeypatch.setattr(dsa_topk_indexer_fp8, "TOPK", topk)
    inputs, content, q = indexer_batch([11, 4, 0], TABLE, seed=seed)
    before = [x.clone() for x in inputs]
    found = dsa_topk_indexer_fp8.run(*inputs)
    assert found.dtype == torch.int32
    assert found.shape == (3, topk)
    expected = scored_by_hand(inputs, content, q)
    for row, scores in zip(found.tolist(), expected, strict=True):
        best = sorted(scores.values(), reverse=True)[:topk]
        ids = row[: len(best)]
        assert len(set(ids)) == len(best)
        # by their scores, for relu makes some of them 0 alike
        assert [scores[i] for i in ids] == pytest.approx(best, rel=1e-4, abs=1e-3)
        assert row[len(best) :] == [-1] * (topk - len(best))
    for given, kept in zip(inputs, before, strict=True):
        assert torch.equal(given.view(torch.uint8), kept.view(torch.uint8))


def test_bytes_mean_what_torch_takes_them_for():
    every = torch.arange(0x7F, dtype=torch.uint8)
    found = every.view(torch.float8_e4m3fn).double().tolist()
    assert found == [fp8(n) for n in range(0x7F)]
