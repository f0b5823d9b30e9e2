"""Variants of attention: the oracle against by hand, inputs, contracts, backends."""

from __future__ import annotations

import json
import math
import sys
from itertools import product

import pytest
import torch

from generator.ops.attention import oracle as oracle_module
from generator.ops.attention.caches import drawn_scale, over_heads, stored
from generator.ops.attention.cases import decode_cases, prefill_cases, sink_logits
from generator.ops.attention.flashinfer import from_last_key, with_sinks
from generator.ops.attention.masks import BOTH_WAYS, mask_rows, tree_masks
from generator.ops.attention.oracle import (
    oracle_attention,
    sees_a_key,
    visible_keys,
)
from generator.ops.attention.variant import Variant, alibi_slopes, variant_of
from generator.ops.attention.variant_family import GEOMETRIES
from generator.ops.op_types.gqa_paged import op as gqa_paged
from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Trial
from tests.builders import ROOT, known, sized

SCALE = 0.3


def drawn(q_len, kv_len, heads=4, kv_heads=2, dim=8):
    made = torch.Generator().manual_seed(q_len * 100 + kv_len)
    shapes = ((q_len, heads, dim), (kv_len, kv_heads, dim), (kv_len, kv_heads, dim))
    return [torch.randn(shape, generator=made, dtype=torch.float64) for shape in shapes]


def of_window(left):
    constants = {"window_left": left}
    interface = Interface({}, {})
    return Definition("x", "gqa_paged", interface, {"page_size": 64}, constants)


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


@pytest.mark.parametrize("lengths", [(7, 7), (7, 12), (12, 5), (3, 0)])
@pytest.mark.parametrize(
    "variant",
    [
        Variant(),
        Variant(window_left=2, soft_cap=5.0),
        Variant(slopes=(0.5, 0.25, 0.125, 0.0625)),
    ],
)
def test_a_few_queries_at_a_time_give_what_all_give_at_once(
    monkeypatch, lengths, variant
):
    q, k, v = drawn(*lengths)
    tree = torch.ones(lengths, dtype=torch.bool).tril(2)
    for sinks, mask in product((None, torch.ones(4)), (None, tree)):
        given = q, k, v, SCALE, variant, sinks, mask
        whole = oracle_attention(*given)
        with monkeypatch.context() as patch:
            patch.setattr(oracle_module, "_QUERIES", 2)
            patch.setattr(oracle_module, "_CPU_BYTES", 1)
            torch.testing.assert_close(oracle_attention(*given), whole)


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
            file = ROOT / f"generator/models/data/{model}.json"
            config = json.loads(file.read_text()) if file.exists() else {}
            figures = {**config, **model_figures().get(model, {})}
            if geometry.window_left >= 0:
                assert geometry.window_left == figures["sliding_window"] - 1
            if geometry.soft_cap:
                assert geometry.soft_cap == figures["attn_logit_softcapping"]
            heads = (geometry.num_qo_heads, geometry.num_kv_heads, geometry.head_dim)
            names = ["num_attention_heads", "num_key_value_heads", "head_dim"]
            if geometry.head_dim == figures.get("global_head_dim"):
                names[1:] = ["num_global_key_value_heads", "global_head_dim"]
            # a config without head_dim divides the hidden size among the heads
            if "head_dim" not in figures:
                size = figures["hidden_size"] // figures["num_attention_heads"]
                figures = {**figures, "head_dim": size}
            queries, keys, dim = (figures[name] for name in names)
            # one of tp devices: a whole share of queries; KV heads fewer than tp are copied
            assert queries % geometry.tp == 0
            share = (queries // geometry.tp, max(keys // geometry.tp, 1), dim)
            assert heads == share


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


def own_slopes(heads):
    """Return ALiBi's slopes as its authors' code computes them, by recursion."""
    if heads & (heads - 1) == 0:
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    closest = 1 << (heads.bit_length() - 1)
    return own_slopes(closest) + own_slopes(2 * closest)[0::2][: heads - closest]


@pytest.mark.parametrize("heads", [1, 2, 6, 8, 32, 40, 112])
def test_the_slopes_of_alibi_are_its_authors(heads):
    torch.testing.assert_close(
        torch.tensor(alibi_slopes(heads)), torch.tensor(own_slopes(heads))
    )


def test_alibi_grows_with_the_distance_to_a_key_before():
    q, k, v = drawn(3, 7)
    slopes = (0.5, 0.25, 0.125, 0.0625)
    keys = torch.arange(7, dtype=torch.float64)
    _, plain = oracle_attention(q * 0.0, k, v, SCALE)
    _, biased = oracle_attention(q * 0.0, k, v, SCALE, Variant(slopes=slopes))
    for i in range(3):
        own = 4 + i
        for h, slope in enumerate(slopes):
            total = torch.exp(slope * (keys[: own + 1] - own)).sum()
            assert biased[i, h] == pytest.approx(math.log2(total), abs=1e-12)
            assert plain[i, h] == pytest.approx(math.log2(own + 1), abs=1e-12)


def test_flashinfers_distance_from_the_first_query_is_taken_off(monkeypatch):
    utils = type(math)("flashinfer.utils")
    utils.get_alibi_slopes = lambda heads, device: torch.tensor(own_slopes(heads))
    monkeypatch.setitem(sys.modules, "flashinfer", type(math)("flashinfer"))
    monkeypatch.setitem(sys.modules, "flashinfer.utils", utils)
    q, k, v = drawn(3, 7)
    slopes = alibi_slopes(4)
    _, expected = oracle_attention(q, k, v, SCALE, Variant(slopes=slopes))
    # query i counts from 0: each logit is larger by slope times the 4 keys before
    counted = expected + 4 * torch.tensor(slopes) / math.log(2.0)
    definition = Definition("x", "gqa_ragged", None, {})
    starts = {"qo_indptr": torch.tensor([0, 3]), "kv_indptr": torch.tensor([0, 7])}
    found = from_last_key(definition, starts, counted)
    torch.testing.assert_close(found, expected.float())


def test_a_mask_replaces_the_position():
    q, k, v = drawn(3, 7)
    mask = torch.rand(3, 7, generator=torch.Generator().manual_seed(1)) < 0.5
    mask[1] = False
    free = Variant(causal=False)
    output, lse = oracle_attention(q, k, v, SCALE, free, mask=mask)
    expected = by_hand(q, k, v, lambda i, j: bool(mask[i, j]))
    torch.testing.assert_close(output, expected[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(lse, expected[1], rtol=1e-12, atol=1e-12)
    assert not output[1].any()
    assert (lse[1] == -math.inf).all()


def test_a_tree_sees_itself_its_ancestors_and_most_keys_before():
    drafts = Case("drafts", "small", {}, {"q_lens": (9, 4, 0), "kv_lens": (70, 2, 5)})
    mask = tree_masks(drafts, Stream("tree"))
    tree, more_queries, none = mask_rows(mask, [(9, 70), (4, 2), (0, 5)])
    assert none.numel() == 0
    nodes = tree[:, 61:]
    assert nodes.diagonal().all()
    assert not nodes.triu(1).any()
    for i in range(9):
        for parent in nodes[i].nonzero().flatten().tolist():
            # what an ancestor sees of the tree is seen too
            assert (nodes[i] >= nodes[parent]).all()
    assert not nodes.tril(-1).all()
    assert 0.8 < float(tree[:, :61].double().mean()) < 0.95
    assert not more_queries[:2].any()


def test_queries_of_an_image_see_keys_behind_their_own():
    image = Case(BOTH_WAYS, "small", {}, {"q_lens": (9, 9), "kv_lens": (9, 30)})
    for part, length in zip(
        mask_rows(tree_masks(image, Stream("tree")), [(9, 9), (9, 30)]),
        (9, 30),
        strict=True,
    ):
        assert part[1:8, length - 8 : length - 1].all()
        assert not part[0, length - 8 :].any()
        assert not part[:8, length - 1].any()


@pytest.mark.parametrize("case", ["usual", "other"])
def test_scales_of_8_bits_are_exact_in_bfloat16_and_differ(case):
    params = {"q_std": 2.0, **({"scale": 0.75} if case == "other" else {})}
    drawn_case = Case(case, "small", {}, params)
    names = ("q", "k", "v", "ckv", "kpe")
    inputs = {f"{name}_scale": "float32" for name in names}
    definition = Definition("x", "gqa_paged", Interface(inputs, {}), {})
    found = [drawn_scale(definition, drawn_case, name) for name in names]
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).double()
    codes = codes[codes.isfinite()]
    for scale in found:
        assert scale != 1.0
        assert torch.equal((codes * scale).bfloat16().double(), codes * scale)
    assert found[1] != found[2]
    assert found[3] != found[4]


def test_a_scale_a_head_differs_from_head_to_head():
    inputs = {"k_scale": "float32[num_kv_heads]"}
    axes = {"num_kv_heads": 8}
    definition = Definition("x", "gqa_paged", Interface(inputs, {}), axes)
    case = Case("usual", "small", {}, {"q_std": 2.0})
    scale = drawn_scale(definition, case, "k")
    assert scale.shape == (8,)
    assert len(set(scale[:4].tolist())) == 4
    values = torch.ones(3, 8, 2)
    back = stored(values, scale, torch.float64) * over_heads(scale)
    torch.testing.assert_close(back, values.double())
    assert drawn_scale(definition, case, "v") == 1.0


PREFILL = "gqa_paged_prefill_{}_h32_kv8_d128_ps64"
STORED = "gqa_paged_decode_kve4m3_h32_kv8_d128_ps64"
SMALL = {"num_qo_heads": 4, "num_kv_heads": 2, "head_dim": 8}


def broken(name, **changed):
    """Return the constraints that a case's inputs break once some are changed."""
    definition = sized(name, **SMALL)
    case = next(c for c in gqa_paged.cases(definition) if c.name == "other-scale")

    def make_inputs(*asked):
        made = gqa_paged.make_inputs(*asked)
        return {n: changed[n](v) if n in changed else v for n, v in made.items()}

    trial = Trial(definition, case, torch.device("cpu"), make_inputs, lambda: None)
    return trial.broken_constraints()


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
@pytest.mark.parametrize("name", ["k_scale", "v_scale"])
def test_a_scale_that_is_not_positive_breaks_the_contract(name, scale):
    assert broken(STORED) == []
    assert broken(STORED, **{name: lambda value: scale}) == [f"{name} > 0"]


def test_one_head_whose_scale_is_not_positive_breaks_the_contract():
    name = STORED.replace("kve4m3", "qe4m3_kve4m3")
    assert broken(name) == []
    spoil = lambda value: value.index_fill(0, torch.tensor([1]), 0.0)
    assert broken(name, q_scale=spoil) == ["q_scale.min() > 0"]


def test_a_mask_of_another_length_breaks_the_contract():
    name = PREFILL.format("custom_mask")
    assert broken(name) == []
    (said,) = broken(name, kv_last_page_len=lambda value: value - 1)
    assert said.startswith("mask_len == ")


def test_no_backend_takes_what_it_lacks():
    def backends(name):
        definition = known(name)
        found = gqa_paged.flashinfer_backends(definition)
        return [b.name for b in found if not b.limit]

    assert backends(STORED) == ["cuda-cores", "fa2"]
    assert backends(STORED.replace("kve4m3", "qe4m3_kve4m3")) == ["fa3"]
    assert backends(PREFILL.format("custom_mask")) == ["fa2"]
    all_of_them = ["cuda-cores", "fa2", "fa3", "xqa"]
    assert backends(STORED.replace("kve4m3", "hnd")) == all_of_them
    assert backends("gqa_paged_decode_alibi_h40_kv40_d128_ps64") == [
        "cuda-cores",
        "fa2",
    ]
    assert backends("gqa_paged_prefill_causal_h32_kv4_d512_ps64") == ["fa2"]


def test_a_query_sees_a_key_where_one_is_visible():
    for q_len, kv_len, causal, window in product(
        (0, 1, 3, 7), (0, 1, 4, 9), (False, True), (-1, 0, 2)
    ):
        variant = Variant(causal=causal, window_left=window)
        expected = visible_keys(q_len, kv_len, variant).any(dim=1)
        assert torch.equal(sees_a_key(q_len, kv_len, variant), expected)
