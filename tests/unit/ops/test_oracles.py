"""Oracles against the references of the definitions, at every head ratio."""

from __future__ import annotations

import re

import pytest
import torch

from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.mla_paged import op as mla_paged
from generator.ops.op_types.rmsnorm import op as rmsnorm
from generator.ops.registry import op_module
from generator.rules.subjects import subject_of
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import (
    CPU,
    cases_of,
    class_of,
    ignore_property,
    known,
    loaded,
    oracle_failures,
    run_of,
    sized,
    trial_of,
)

REAL = [
    "rmsnorm_h512",
    "rmsnorm_h5376",
    "fused_add_rmsnorm_h4096",
    "gemm_n256_k3072",
    "gqa_paged_decode_h5_kv1_d128_ps1",
    "gqa_paged_decode_h16_kv2_d128_ps64",
    "gqa_paged_prefill_causal_h40_kv10_d128_ps1",
    "gqa_paged_prefill_causal_h24_kv4_d128_ps64",
    "mla_paged_decode_h8_ckv512_kpe64_ps1",
    "mla_paged_prefill_causal_h8_ckv512_kpe64_ps1",
]
PAGED = [
    "gqa_paged_decode_h32_kv8_d128_ps1",
    "gqa_paged_decode_h32_kv8_d128_ps64",
    "gqa_paged_prefill_causal_h32_kv8_d128_ps1",
    "gqa_paged_prefill_causal_h32_kv8_d128_ps64",
]


def rendered(definition, name, **changes):
    op = op_module(definition.op_type)
    return class_of(op, definition, run_of(loaded(name).reference), **changes)


@pytest.mark.parametrize("name", REAL)
def test_references_agree_with_their_oracles(name):
    assert oracle_failures(rendered(known(name), name), ("small",)) == []


@pytest.mark.parametrize("ratio", [1, 3, 5, 6, 8, 10])
@pytest.mark.parametrize("name", PAGED)
def test_references_agree_at_every_head_ratio(name, ratio):
    definition = sized(name, num_qo_heads=2 * ratio, num_kv_heads=2, head_dim=16)
    assert oracle_failures(rendered(definition, name)) == []


@pytest.mark.parametrize("name", REAL)
def test_every_test_of_the_base_class_is_green(name):
    cls = rendered(known(name), name)
    test = cls()
    trial = trial_of(cls, cases_of(cls)[0])
    test.test_contract(trial)
    test.test_output_shape(trial)
    test.test_output_dtype(trial)
    test.test_determinism(trial)
    test.test_inputs_unmodified(trial)
    records = []
    test.test_matches_oracle(trial, lambda key, value: records.append(key))
    assert records == ["comparison"] * len(cls.interface.output_specs)


def test_the_norm_is_worked_out_by_hand():
    definition = sized("fused_add_rmsnorm_h5376", hidden_size=2)
    row = torch.tensor([[3.0, 0.0]]).bfloat16()
    inputs = {
        "hidden_states": row,
        "residual": torch.tensor([[0.0, 4.0]]).bfloat16(),
        "weight": torch.tensor([1.0, -0.5]).bfloat16(),
    }
    # (3, 4) has the mean square 12.5; Gemma's weights are offset by one
    root = (12.5 + 1e-6) ** 0.5
    expected = torch.tensor([[3.0 * 2.0 / root, 4.0 * 0.5 / root]]).double()
    found = rmsnorm.oracle(definition, inputs)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=0.0)


def test_the_gemm_oracle_is_the_same_in_blocks(monkeypatch):
    definition = sized("gemm_n128_k2048", K=32)
    inputs = gemm.make_inputs(definition, gemm.cases(definition)[1], Stream("s"))
    whole = gemm.oracle(definition, inputs)
    assert whole.shape == (7, 128)
    torch.testing.assert_close(whole, inputs["A"].double() @ inputs["B"].double().T)
    monkeypatch.setattr(gemm, "_BLOCK", 50)
    torch.testing.assert_close(gemm.oracle(definition, inputs), whole)


@pytest.mark.parametrize("op", [gqa_paged, mla_paged])
def test_the_rows_that_kernels_define_are_those_with_a_finite_lse(op):
    name = {
        gqa_paged: "gqa_paged_prefill_causal_h6_kv1_d128_ps64",
        mla_paged: "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64",
    }[op]
    definition = sized(name, num_qo_heads=2)
    cases = {case.name: case for case in op.cases(definition)}
    inputs = op.make_inputs(definition, cases["more-queries-than-keys"], Stream("s"))
    rows = op.defined_rows(definition, inputs)
    _, lse = op.oracle(definition, inputs)
    assert rows.tolist() == torch.isfinite(lse).all(dim=1).tolist()
    assert 0 < int(rows.sum()) < len(rows)


def test_mla_is_gqa_with_one_shared_key_of_both_parts():
    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64"
    definition = sized(name, num_qo_heads=3)
    case = mla_paged.cases(definition)[2]
    inputs = mla_paged.make_inputs(definition, case, Stream("s"))
    output, lse = mla_paged.oracle(definition, inputs)
    as_gqa = {
        **inputs,
        "q": torch.cat([inputs["q_nope"], inputs["q_pe"]], 2),
        "k_cache": torch.cat([inputs["ckv_cache"], inputs["kpe_cache"]], 2)[:, :, None],
        "v_cache": inputs["ckv_cache"][:, :, None],
    }
    expected, expected_lse = gqa_paged.oracle(definition, as_gqa)
    assert torch.equal(output, expected)
    assert torch.equal(lse, expected_lse)
    assert inputs["sm_scale"] == pytest.approx((128 + 64) ** -0.5)


def test_a_wrong_reference_is_red_with_its_worst_elements():
    name = "rmsnorm_h512"
    cls = class_of(
        rmsnorm, known(name), lambda x, w: run_of(loaded(name).reference)(x, 2 * w)
    )
    trial = trial_of(cls, cases_of(cls)[0])
    assert trial.device == CPU
    with pytest.raises(AssertionError) as caught:
        cls().test_matches_oracle(trial, ignore_property)
    text = str(caught.value)
    assert f"{name} 'output' against oracle, one-row: FAILED" in text
    assert "mismatched elements: 512 / 512 (100.0%), allowed 0.0%" in text
    assert re.search(r"actual is (2|2\.000\d) times expected throughout", text)
    # the five worst, of which the finding names the first
    assert text.count(": actual ") == 6


def test_penalties_of_counts_are_not_rounded_to_float32():
    subject = subject_of(loaded("penalties_of_counts_v128256"))
    case = next(c for c in subject.op.cases(subject.definition) if c.size == "small")
    inputs = subject.trial(case).fresh_inputs()
    inputs["logits"].zero_()
    result = subject.op.oracle(subject.definition, inputs)
    rows = inputs["output_counts"].tolist()
    penalties = zip(
        inputs["frequency_penalties"].tolist(),
        inputs["presence_penalties"].tolist(),
        strict=True,
    )
    for row, counts, (often, once) in zip(
        result.tolist(), rows, penalties, strict=True
    ):
        assert row == [-(often * n + once * (n > 0)) for n in counts]
