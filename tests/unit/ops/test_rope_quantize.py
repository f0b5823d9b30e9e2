"""rope_quantize: faults planted in references, the adapter, rounding to e4m3."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from generator.ops.op_types.rope_quantize import op as rope_quantize
from tests.builders import (
    cases_of,
    class_of,
    loaded,
    of_flashinfer,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)

SHORT = {"num_qo_heads": 3, "rope_dim": 8, "nope_dim": 16}
GROUPED = {**SHORT, "num_kv_heads": 2}
PAGED = {"page_size": 16}
AXES = {
    "rope_quantize_fp8_neox_h48_kv8_rope64_nope64": GROUPED,
    "rope_quantize_fp8_append_paged_kv_cache_neox_h48_kv8_rope64_nope64_ps64": {
        **GROUPED,
        **PAGED,
        "head_dim": 24,
    },
    "mla_rope_quantize_fp8_gptj_h16_rope64_nope512": SHORT,
    "mla_rope_quantize_fp8_append_paged_kv_cache_gptj_h16_rope64_nope512_ps64": {
        **SHORT,
        **PAGED,
    },
}
PLAIN, APPENDED, LATENT, LATENT_APPENDED = AXES
# of a definition, what is replaced in its reference
FAULTS = [
    (PLAIN, "second * cos + first * sin", "second * cos - first * sin"),
    (PLAIN, ".clamp(-448.0, 448.0)", ".clamp(-240.0, 240.0)"),
    (PLAIN, "(x.float() * scale)", "(x.float() / scale)"),
    (PLAIN, "quantised(q_nope, quant_scale_q)", "quantised(q_nope, 1.0)"),
    (PLAIN, "quantised(k_nope, quant_scale_kv)", "quantised(k_nope, quant_scale_q)"),
    (APPENDED, "(k_rope_out, k_nope_out)", "(k_nope_out, k_rope_out)"),
    (APPENDED, "kv_indptr[batch_indices] + ", ""),
    (APPENDED, "value = quantised(v, quant_scale_kv)", "value = quantised(v, 1.0)"),
    (LATENT, "(even * cos - odd * sin,", "(even * cos + odd * sin,"),
    (LATENT, "cos_sin_cache[pos_ids]", "cos_sin_cache[pos_ids[:1].expand_as(pos_ids)]"),
    (LATENT_APPENDED, "positions % page_size", "pos_ids % page_size"),
    (LATENT_APPENDED, "ckv_cache.clone()", "torch.zeros_like(ckv_cache)"),
]


def rendered(name, run):
    return class_of(rope_quantize, sized(name, **AXES[name]), run)


@pytest.mark.parametrize("name", AXES)
def test_the_references_pass_every_case(name):
    assert oracle_failures(rendered(name, run_of(loaded(name).reference))) == []


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_is_caught(name, old, new):
    run = run_of(replaced(loaded(name).reference, old, new))
    assert oracle_failures(rendered(name, run), ("small",))


@pytest.mark.parametrize("name", AXES)
def test_the_adapter_passes_every_input(name, monkeypatch):
    run = run_of(loaded(name).reference)
    cls = rendered(name, run)

    def quantise(q_rope, k_rope, q_nope, k_nope, cache, pos_ids, **options):
        assert options["is_neox"] is ("_neox_" in name)
        assert options["quantize_dtype"] == torch.float8_e4m3fn
        scales = (options["quant_scale_q"], options["quant_scale_kv"])
        return run(q_rope, k_rope, q_nope, k_nope, cache, pos_ids, *scales)

    def append(q_r, k_r, q_n, k_n, v, cache, ids, caches, indices, indptr, *rest, **o):
        assert (v is None) == (name == LATENT_APPENDED)
        assert (o["page_size"], o["kv_layout"]) == (16, "NHD")
        rows = (q_r, k_r, q_n, k_n, *((v,) if v is not None else ()))
        scales = (o["quant_scale_q"], o["quant_scale_kv"])
        q_rope, q_nope, *whole = run(
            *rows, cache, ids, *caches, indices, indptr, *rest, *scales
        )
        for given, made in zip(caches, whole, strict=True):
            given.copy_(made)
        return q_rope, q_nope

    stub = SimpleNamespace(
        rope_quantize_fp8=quantise,
        mla_rope_quantize_fp8=quantise,
        rope_quantize_fp8_append_paged_kv_cache=append,
    )
    monkeypatch.setitem(sys.modules, "flashinfer", SimpleNamespace(rope=stub))
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        made = of_flashinfer(cls, trial, "")
        for actual, expected in zip(made, trial.outputs, strict=True):
            assert torch.equal(actual.view(torch.uint8), expected.view(torch.uint8))
