"""The float64 attention oracle against three loops, and the cases it is tried on."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.attention.cases import decode_cases, prefill_cases, ragged_cases
from generator.ops.attention.flashinfer import workspace
from generator.ops.attention.oracle import (
    oracle_attention,
    oracle_paged,
    oracle_ragged,
    rows_with_a_key,
)
from generator.ops.paging import indptr, page_counts, page_table, token_slots
from kernel_judge.definition import LIMITS, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream

SM_SCALE = 0.43


def by_hand(q, k, v, sm_scale):
    """Attend with Python floats: query i sees keys 0 … kv_len - q_len + i."""
    output = torch.zeros(q.shape[0], q.shape[1], v.shape[2], dtype=torch.float64)
    lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float64)
    group = q.shape[1] // k.shape[1]
    for i in range(q.shape[0]):
        visible = range(min(k.shape[0] - q.shape[0] + i + 1, k.shape[0]))
        for h in range(q.shape[1]):
            weights = []
            for j in visible:
                pairs = zip(q[i, h].tolist(), k[j, h // group].tolist(), strict=True)
                weights.append(math.exp(sm_scale * math.fsum(a * b for a, b in pairs)))
            if not weights:
                continue
            total = math.fsum(weights)
            lse[i, h] = math.log2(total)
            for j, weight in zip(visible, weights, strict=True):
                output[i, h] += weight / total * v[j, h // group].double()
    return output, lse


def qkv(q_len, kv_len, heads, kv_heads, dim=4, dim_v=3):
    stream = Stream("qkv", str((q_len, kv_len, heads, kv_heads)))
    return (
        stream.values((q_len, heads, dim), 1.5),
        stream.values((kv_len, kv_heads, dim)),
        stream.values((kv_len, kv_heads, dim_v)),
    )


def agree(found, expected):
    for actual, other in zip(found, expected, strict=True):
        assert actual.dtype == torch.float64
        torch.testing.assert_close(actual, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("ratio", [1, 3, 5, 6, 8, 10])
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_every_head_ratio_agrees_with_the_loops(ratio, kv_heads):
    q, k, v = qkv(4, 7, ratio * kv_heads, kv_heads)
    agree(oracle_attention(q, k, v, SM_SCALE), by_hand(q, k, v, SM_SCALE))


@pytest.mark.parametrize(
    ("q_len", "kv_len"), [(1, 1), (1, 9), (5, 5), (3, 8), (7, 3), (4, 1)]
)
def test_the_mask_is_aligned_bottom_right(q_len, kv_len):
    q, k, v = qkv(q_len, kv_len, 4, 2)
    output, lse = oracle_attention(q, k, v, SM_SCALE)
    agree((output, lse), by_hand(q, k, v, SM_SCALE))
    blind = max(q_len - kv_len, 0)
    assert torch.equal(output[:blind], torch.zeros_like(output[:blind]))
    assert bool((lse[:blind] == -math.inf).all())
    assert bool(torch.isfinite(lse[blind:]).all())


@pytest.mark.parametrize(("q_len", "kv_len"), [(3, 0), (0, 5), (0, 0)])
def test_nothing_to_see_gives_zero_and_minus_infinity(q_len, kv_len):
    q, k, v = qkv(q_len, kv_len, 4, 2)
    output, lse = oracle_attention(q, k, v, SM_SCALE)
    assert tuple(output.shape) == (q_len, 4, 3)
    assert torch.equal(output, torch.zeros(q_len, 4, 3, dtype=torch.float64))
    assert torch.equal(lse, torch.full((q_len, 4), -math.inf, dtype=torch.float64))


def test_lse_is_base_2_of_the_scaled_logits():
    # two keys with logits 3 and 5: log2(e^3 + e^5)
    q = torch.tensor([[[1.0]]])
    k = torch.tensor([[[3.0]], [[5.0]]]) / SM_SCALE
    _, lse = oracle_attention(q, k, torch.ones(2, 1, 1), SM_SCALE)
    expected = math.log2(math.exp(3.0) + math.exp(5.0))
    assert lse.item() == pytest.approx(expected, rel=1e-7)


def test_logits_far_beyond_exp_do_not_overflow():
    q = torch.full((1, 1, 4), 1e3)
    k = torch.tensor([[[1.0] * 4], [[-1.0] * 4]])
    v = torch.tensor([[[2.0]], [[-7.0]]])
    output, lse = oracle_attention(q, k, v, 1.0)
    assert output.item() == 2.0
    assert lse.item() == pytest.approx(4e3 / math.log(2.0))


def paged_inputs(q_lens, kv_lens, page_size):
    num_pages = sum(page_counts(kv_lens, page_size)) + 3
    table = page_table(kv_lens, page_size, num_pages, Stream("pages"))
    inputs = {
        "qo_indptr": indptr(q_lens),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": SM_SCALE,
    }
    return inputs, table, num_pages


@pytest.mark.parametrize("page_size", [1, 4])
def test_a_paged_batch_is_its_sequences_one_after_another(page_size):
    q_lens, kv_lens = (2, 0, 3, 1, 2), (7, 5, 0, 8, 1)
    inputs, table, num_pages = paged_inputs(q_lens, kv_lens, page_size)
    if page_size == 1:
        del inputs["kv_last_page_len"]
    q = Stream("q").values((sum(q_lens), 4, 3))
    k = Stream("k").values((num_pages, page_size, 2, 3))
    v = Stream("v").values((num_pages, page_size, 2, 5))
    found = oracle_paged(q, k, v, inputs)
    parts, start = [], 0
    for q_len, slots in zip(q_lens, token_slots(table, page_size), strict=True):
        keys, values = k.flatten(0, 1)[slots], v.flatten(0, 1)[slots]
        parts.append(by_hand(q[start : start + q_len], keys, values, SM_SCALE))
        start += q_len
    agree(found, [torch.cat(part) for part in zip(*parts, strict=True)])


def test_rows_with_a_key_are_those_with_a_finite_lse():
    q_lens, kv_lens = (2, 0, 3, 6, 1), (7, 5, 0, 4, 1)
    inputs, _, num_pages = paged_inputs(q_lens, kv_lens, 4)
    rows = rows_with_a_key(inputs, 4)
    assert rows.dtype == torch.bool
    expected = [True] * 2 + [False] * 3 + [False] * 2 + [True] * 4 + [True]
    assert rows.tolist() == expected
    q = Stream("q").values((sum(q_lens), 2, 3))
    k = Stream("k").values((num_pages, 4, 1, 3))
    _, lse = oracle_paged(q, k, k, inputs)
    assert torch.isfinite(lse).all(dim=1).tolist() == expected


def test_a_ragged_batch_is_its_sequences_one_after_another():
    q_lens, kv_lens = (2, 0, 3, 6, 2), (7, 5, 0, 4, 1)
    inputs = {
        "q": Stream("q").values((sum(q_lens), 4, 3)),
        "k": Stream("k").values((sum(kv_lens), 2, 3)),
        "v": Stream("v").values((sum(kv_lens), 2, 5)),
        "qo_indptr": indptr(q_lens),
        "kv_indptr": indptr(kv_lens),
        "sm_scale": SM_SCALE,
    }
    sequences = zip(
        inputs["q"].split(q_lens),
        inputs["k"].split(kv_lens),
        inputs["v"].split(kv_lens),
        strict=True,
    )
    parts = [by_hand(*sequence, SM_SCALE) for sequence in sequences]
    output, lse = oracle_ragged(inputs)
    agree((output, lse), [torch.cat(part) for part in zip(*parts, strict=True)])
    rows = rows_with_a_key(inputs)
    assert rows.tolist() == torch.isfinite(lse).all(dim=1).tolist()
    assert not rows.all()


def of_page_size(page_size):
    axes = {"page_size": page_size}
    return Definition("plain", "gqa_paged", Interface({}, {}), axes)


def test_ragged_cases_have_the_lengths_of_the_paged_ones():
    plain = of_page_size(1)
    paged = prefill_cases(plain)
    for case, other in zip(ragged_cases(plain), paged, strict=True):
        assert (case.name, case.size) == (other.name, other.size)
        q_lens, kv_lens = case.params["q_lens"], case.params["kv_lens"]
        # limits that only contiguous keys cross, and those that only pages do
        if case.name not in ("far-past-limits", "many-sequences"):
            assert case.params == other.params
        assert len(q_lens) == len(kv_lens)
        assert case.axes == {
            "len_indptr": len(q_lens) + 1,
            "total_q": sum(q_lens),
            "total_kv": sum(kv_lens),
        }


@pytest.mark.parametrize("of_stage", [decode_cases, prefill_cases])
def test_the_farthest_pages_of_one_token_are_beyond_524288(of_stage):
    case = next(c for c in of_stage(of_page_size(1)) if c.name == "far-past-limits")
    for seed in range(20):
        table = page_table(
            case.params["kv_lens"], 1, case.axes["num_pages"], Stream("far", str(seed))
        )
        assert table.indices.max() >= 1 << 19


@pytest.mark.parametrize("page_size", [1, 64])
@pytest.mark.parametrize("of_stage", [decode_cases, prefill_cases])
def test_the_axes_of_a_case_follow_from_its_lengths(of_stage, page_size):
    cases = of_stage(of_page_size(page_size))
    assert len({case.name for case in cases}) == len(cases)
    assert {case.size for case in cases} == {"small", "medium", "large", LIMITS}
    for case in cases:
        q_lens, kv_lens = case.params["q_lens"], case.params["kv_lens"]
        assert len(q_lens) == len(kv_lens) == case.axes["batch_size"]
        assert case.axes["len_indptr"] == len(kv_lens) + 1
        assert case.axes["total_q"] == sum(q_lens)
        pages = sum(-(-n // page_size) for n in kv_lens)
        assert case.axes["num_kv_indices"] == pages
        assert case.axes["num_pages"] > pages
        if of_stage is decode_cases:
            assert set(q_lens) == {1}


def test_the_cases_hold_the_lengths_at_which_kernels_go_wrong():
    pairs = {
        (q, kv)
        for case in prefill_cases(of_page_size(64))
        for q, kv in zip(case.params["q_lens"], case.params["kv_lens"], strict=True)
    }
    assert any(q > kv > 0 for q, kv in pairs)
    assert any(kv > q > 1 for q, kv in pairs)
    assert any(q == kv > 1 for q, kv in pairs)
    assert {(1, 1), (0, 0)} <= pairs
    assert any(q > 0 and kv == 0 for q, kv in pairs)
    assert any(q == 0 and kv > 0 for q, kv in pairs)
    decode = {
        n for case in decode_cases(of_page_size(64)) for n in case.params["kv_lens"]
    }
    assert {0, 1, 63, 64, 65, 127, 128, 129} <= decode


def test_the_workspace_is_made_once_a_device_and_zeroed():
    workspace.cache_clear()
    made = workspace(torch.device("cpu"))
    assert made is workspace(torch.device("cpu"))
    assert made.dtype == torch.uint8
    assert not made[:: 2**20].any()
    workspace.cache_clear()
