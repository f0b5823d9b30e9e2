"""Windows, soft caps, sinks and attention without a mask: the oracle against by hand."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.attention.cases import decode_cases, prefill_cases, sink_logits
from generator.ops.attention.flashinfer import with_sinks
from generator.ops.attention.oracle import oracle_attention, visible_keys
from generator.ops.attention.variant import Variant, variant_of
from generator.ops.attention.variant_family import GEOMETRIES
from generator.testing.definition import Definition
from generator.testing.seeded_inputs import Stream

SCALE = 0.3


def drawn(q_len, kv_len, heads=4, kv_heads=2, dim=8):
    made = torch.Generator().manual_seed(q_len * 100 + kv_len)
    shapes = ((q_len, heads, dim), (kv_len, kv_heads, dim), (kv_len, kv_heads, dim))
    return [torch.randn(shape, generator=made, dtype=torch.float64) for shape in shapes]


def of_window(left):
    constants = {"window_left": left}
    return Definition("x", "gqa_paged", None, {"page_size": 64}, constants)


def by_hand(q, k, v, seen, cap=0.0, sinks=None):
    """Return attention and base-2 LSE with loops; `seen(i, j)`: query i sees key j."""
    ratio = q.shape[1] // k.shape[1]
    output = torch.zeros(q.shape[0], q.shape[1], v.shape[2], dtype=torch.float64)
    lse = torch.zeros(q.shape[:2], dtype=torch.float64)
    for i in range(q.shape[0]):
        for h in range(q.shape[1]):
            total = 0.0 if sinks is None else math.exp(sinks[h])
            for j in range(k.shape[0]):
                if not seen(i, j):
                    continue
                logit = float(q[i, h] @ k[j, h // ratio]) * SCALE
                if cap:
                    logit = cap * math.tanh(logit / cap)
                total += math.exp(logit)
                output[i, h] += math.exp(logit) * v[j, h // ratio]
            lse[i, h] = math.log2(total) if total else -math.inf
            if total:
                output[i, h] /= total
    return output, lse


def test_a_window_sees_window_left_keys_and_the_querys_own():
    seen = visible_keys(6, 9, Variant(window_left=3)).sum(dim=1)
    assert seen.tolist() == [4, 4, 4, 4, 4, 4]
    # queries 3 ... 8 of 9 keys: the first key of each window
    first = visible_keys(6, 9, Variant(window_left=3)).int().argmax(dim=1)
    assert first.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("sliding_window", [1, 2, 128])
def test_a_models_sliding_window_counts_the_querys_own_key(sliding_window):
    q, k = torch.arange(300)[:, None], torch.arange(300)
    # the mask of a model's config: k > q - sliding_window, as transformers has it
    of_model = (k <= q) & (k > q - sliding_window)
    ours = visible_keys(300, 300, Variant(window_left=sliding_window - 1))
    assert torch.equal(ours, of_model)


def test_the_windows_of_the_geometries_are_those_of_their_models():
    from generator.dataset.model_figures import model_figures

    for geometry in GEOMETRIES:
        for model in geometry.models:
            figures = model_figures()[model]
            if geometry.window_left >= 0:
                assert geometry.window_left == figures["sliding_window"] - 1
            if geometry.soft_cap:
                assert geometry.soft_cap == figures["attn_logit_softcapping"]
            heads = (geometry.num_qo_heads, geometry.num_kv_heads, geometry.head_dim)
            names = ["num_attention_heads", "num_key_value_heads", "head_dim"]
            if geometry.head_dim == figures.get("global_head_dim"):
                names[1:] = ["num_global_key_value_heads", "global_head_dim"]
            assert heads == tuple(figures[name] for name in names)


@pytest.mark.parametrize(
    "variant",
    [
        Variant(),
        Variant(window_left=0),
        Variant(window_left=2),
        Variant(soft_cap=0.5),
        Variant(window_left=3, soft_cap=0.5),
        Variant(causal=False),
    ],
)
@pytest.mark.parametrize("with_sink", [False, True])
def test_the_oracle_agrees_with_loops(variant, with_sink):
    q, k, v = drawn(3, 7)
    sinks = torch.tensor([0.5, -1.0, 2.0, -math.inf]) if with_sink else None

    def seen(i, j):
        own = i + 4
        after = variant.causal and j > own
        before = variant.window_left >= 0 and j < own - variant.window_left
        return not (after or before)

    expected = by_hand(q, k, v, seen, variant.soft_cap, sinks)
    actual = oracle_attention(q, k, v, SCALE, variant, sinks)
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e, rtol=1e-12, atol=1e-12)


def test_a_query_without_a_key_has_the_lse_of_its_sink():
    q, k, v = drawn(3, 1)
    sinks = torch.tensor([1.0, 2.0, 3.0, 4.0])
    output, lse = oracle_attention(q, k, v, SCALE, Variant(), sinks)
    assert not output[:2].any()
    torch.testing.assert_close(
        lse[:2], (sinks.double() / math.log(2.0)).expand(2, -1), rtol=1e-15, atol=0
    )


def test_the_share_of_sinks_corrects_attention_without_them():
    q, k, v = drawn(5, 9)
    sinks = torch.tensor([0.5, -1.0, 3.0, -math.inf])
    without = oracle_attention(q, k, v, SCALE)
    expected = oracle_attention(q, k, v, SCALE, sinks=sinks)
    output, lse = with_sinks(without[0], without[1], sinks)
    # the correction multiplies in float32
    torch.testing.assert_close(output, expected[0], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(lse, expected[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("left", [127, 1023, 4095])
def test_the_cases_stand_on_both_sides_of_a_window(left):
    decode = {n for c in decode_cases(of_window(left)) for n in c.params["kv_lens"]}
    assert {left, left + 1, left + 2} <= decode
    pairs = [
        pair
        for case in prefill_cases(of_window(left))
        for pair in zip(case.params["q_lens"], case.params["kv_lens"], strict=True)
    ]
    # some query is the first from which the window takes a key
    assert any(kv - q <= left < kv - 1 for q, kv in pairs)


def test_sinks_have_some_weight_and_not_all():
    sinks = sink_logits(4096, Stream("sinks"))
    assert sinks.dtype == torch.float32
    assert 3.8 < float(sinks.mean()) < 4.2
    assert 1.9 < float(sinks.std()) < 2.1


def test_a_plain_definition_has_no_variant():
    assert variant_of(Definition("x", "gqa_paged", None, {})) == Variant()
    constants = {"logits_soft_cap": 50, "noncausal": True, "window_left": 7}
    named = Definition("x", "gqa_paged", None, {}, constants)
    assert variant_of(named) == Variant(7, 50.0, causal=False)
