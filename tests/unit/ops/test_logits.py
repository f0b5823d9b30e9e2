"""Bounds of attention grow with a case's logits, by what the case states of scales."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops.attention.logits import growth
from generator.rules.subjects import subject_of
from generator.running.workloads import Workloads
from tests.builders import ROOT, loaded

RAGGED = "gqa_ragged_prefill_causal_h32_kv8_d128"
GEMMA = "gqa_ragged_prefill_causal_h32_kv4_d512"
LATENT = "mla_paged_decode_kve4m3_h8_ckv512_kpe64_ps64"
BY_HEAD = "gqa_paged_prefill_causal_qe4m3_kve4m3_h32_kv8_d128_ps64"
INDEXER = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"


def subject(name):
    return subject_of(loaded(name))


def first_workload(of):
    return Workloads(ROOT, "fit").of(of)[0]


def test_own_cases_have_the_usual_logits_but_for_the_extreme_one():
    of = subject(RAGGED)
    found = {case.name: growth(of.definition, case) for case in of.cases()}
    assert found.pop("extreme-logits") == 20.0
    assert {*found.values()} == {1.0}


def test_a_workload_has_the_logits_that_its_scale_makes():
    of = subject(GEMMA)
    workload = first_workload(of)
    assert growth(of.definition, workload) == pytest.approx(math.sqrt(512))
    inputs = of.trial(workload).fresh_inputs()
    keys = inputs["k"].float().repeat_interleave(8, dim=1)
    logits = torch.einsum("qhd,khd->hqk", inputs["q"].float(), keys)
    deviation = float(logits.std()) * inputs["sm_scale"]
    assert deviation / 2.0 == pytest.approx(math.sqrt(512), rel=0.1)


def test_a_scale_of_stored_keys_counts_and_that_of_values_does_not():
    of = subject(LATENT)
    workload = first_workload(of)
    # stored by 0.4375, read by 0.8125; sm_scale is that of Kimi, times sqrt(192)
    scale = workload.stated("sm_scale") * math.sqrt(192)
    ratio = max(0.6875 / 0.6875, 0.8125 / 0.4375)
    assert growth(of.definition, workload) == pytest.approx(scale * ratio)
    assert growth(subject(RAGGED).definition, first_workload(subject(RAGGED))) == (
        pytest.approx(1.0)
    )


def test_scales_of_heads_that_a_file_states_count_where_they_are_largest():
    of = subject(BY_HEAD)
    workload = first_workload(of)
    inputs = of.trial(workload).fresh_inputs()
    of_keys = inputs["k_cache"].float().std() * inputs["k_scale"].repeat_interleave(4)
    of_queries = inputs["q"].float().std() * inputs["q_scale"]
    usual = of.op.cases(of.definition)[0]
    first = of.trial(usual).inputs["q"].float().std(dim=(0, 2))
    by_head = first * inputs["q_scale"] * of_keys
    deviation = float(by_head.max()) * inputs["sm_scale"] * math.sqrt(128)
    assert float((of_queries * of_keys).max()) > 2.0
    assert growth(of.definition, workload) == pytest.approx(deviation / 2.0, rel=0.2)


def test_an_op_without_attention_has_no_growth():
    of = subject(INDEXER)
    assert growth(of.definition, of.cases()[0]) == 1.0


def test_only_atol_grows():
    of = subject(GEMMA)
    own, workload = of.cases()[0], first_workload(of)
    usual = of.tolerance("lse", "oracle", own)
    wide = of.tolerance("lse", "oracle", workload)
    assert wide.atol == pytest.approx(usual.atol * math.sqrt(512))
    assert (wide.rtol, wide.nmse, wide.bias) == (usual.rtol, usual.nmse, usual.bias)


@pytest.mark.parametrize("call", ["cpu", "strided"])
def test_an_lse_of_two_calls_is_off_by_twice_as_much_as_of_one(call):
    of = subject(RAGGED)
    case = next(case for case in of.cases() if case.name == "extreme-logits")
    one = of.tolerance("lse", "oracle", case)
    two = of.tolerance("lse", f"metamorphic:{call}", case)
    assert (two.rtol, two.atol) == (2.0 * one.rtol, 2.0 * one.atol)
