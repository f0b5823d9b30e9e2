"""gqa_ragged and mla_ragged: faults planted in the references, and the adapters."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from generator.ops.attention.flashinfer import workspace
from generator.ops.attention.oracle import oracle_ragged
from generator.ops.op_types.gqa_ragged import op as gqa_ragged
from generator.ops.op_types.mla_ragged import op as mla_ragged
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
from tests.unit.ops.survivors import with_defect

GQA = "gqa_ragged_prefill_causal_h32_kv8_d128"
MLA = "mla_ragged_prefill_causal_h16_qk192_vo128"
SMALL = {
    GQA: sized(GQA, num_qo_heads=6, num_kv_heads=2, head_dim=16),
    MLA: sized(MLA, num_qo_heads=3, num_kv_heads=3, qk_dim=24, vo_dim=16),
}
OPS = {GQA: gqa_ragged, MLA: mla_ragged}
BOTH = pytest.mark.parametrize("name", [GQA, MLA])

# fault → the definitions whose reference has it, the text, what replaces it
FAULTS = {
    "keys of the first sequence": ("k[kv_start:kv_end]", "k[:kv_len]"),
    "values of the first sequence": ("v[kv_start:kv_end]", "v[:kv_len]"),
    "queries by the starts of the keys": ("qo_bounds = qo", "qo_bounds = kv"),
}


def rendered(name, run):
    return class_of(OPS[name], SMALL[name], run)


def mutant(name, old, new):
    return rendered(name, run_of(replaced(loaded(name).reference, old, new)))


@BOTH
def test_the_reference_passes_every_case(name):
    cls = rendered(name, run_of(loaded(name).reference))
    assert oracle_failures(cls) == []


@BOTH
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(name, fault):
    old, new = FAULTS[fault]
    assert_caught(mutant(name, old, new))


def assert_caught(cls):
    """A fault shows as a wrong value, or makes run() itself fail."""
    failed = []
    for case in cases_of(cls):
        try:
            cls().test_matches_oracle(trial_of(cls, case), lambda name, value: None)
        except (AssertionError, RuntimeError):
            failed.append(case.name)
    assert failed


@BOTH
@pytest.mark.parametrize(
    ("defect", "case"),
    [
        ("mask aligned top-left", "chunked"),
        # of a single token the output shows the values alone, its LSE the keys
        ("K taken for V", "single-token"),
    ],
)
def test_a_defect_shows_in_the_case_that_is_made_for_it(name, defect, case):
    run = with_defect(SMALL[name], run_of(loaded(name).reference), defect)
    assert case in oracle_failures(rendered(name, run), ("small",))


@BOTH
def test_rows_without_a_key_are_zero(name):
    run = run_of(loaded(name).reference)
    wrong = with_defect(SMALL[name], run, "LSE of no key a finite number")
    assert oracle_failures(rendered(name, wrong)) == ["more-queries-than-keys"]


class Wrapper:
    """Stand in for FlashInfer's: plan() takes what the real one takes first."""

    def __init__(self, workspace, kv_layout, backend):
        assert workspace.dtype == torch.uint8
        assert (kv_layout, backend) == ("NHD", "fa3")

    def plan(
        self,
        qo_indptr,
        kv_indptr,
        num_qo_heads,
        num_kv_heads,
        head_dim_qk,
        head_dim_vo=None,
        *,
        causal,
        sm_scale,
        q_data_type,
        kv_data_type,
    ):
        assert causal
        self.inputs = {
            "qo_indptr": qo_indptr,
            "kv_indptr": kv_indptr,
            "sm_scale": sm_scale,
        }
        self.heads = (num_qo_heads, num_kv_heads)
        self.dims = (head_dim_qk, head_dim_vo or head_dim_qk)
        self.dtypes = (q_data_type, kv_data_type)

    def run(self, q, k, v, return_lse):
        assert return_lse
        assert (q.shape[1], k.shape[1]) == self.heads
        assert (k.shape[2], v.shape[2]) == self.dims
        assert (q.dtype, k.dtype) == self.dtypes
        output, lse = oracle_ragged({**self.inputs, "q": q, "k": k, "v": v})
        return output.to(q.dtype), lse.float()


@BOTH
def test_the_adapter_passes_what_the_wrapper_takes(name, monkeypatch):
    flashinfer = SimpleNamespace(BatchPrefillWithRaggedKVCacheWrapper=Wrapper)
    monkeypatch.setitem(sys.modules, "flashinfer", flashinfer)
    monkeypatch.setattr("generator.ops.attention.flashinfer.WORKSPACE_BYTES", 1)
    workspace.cache_clear()
    cls = rendered(name, run_of(loaded(name).reference))
    for case in cases_of(cls):
        trial = trial_of(cls, case)
        output, lse = of_flashinfer(cls, trial, "fa3")
        torch.testing.assert_close(output, trial.outputs[0], rtol=1e-2, atol=1e-3)
        torch.testing.assert_close(lse, trial.outputs[1], rtol=1e-5, atol=1e-4)
    workspace.cache_clear()
    backends = cls.subject().op.kernels["flashinfer"].backends(cls.definition())
    assert [backend.name for backend in backends] == ["fa2", "fa3"]
