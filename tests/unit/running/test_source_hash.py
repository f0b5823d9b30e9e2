"""The hash of what makes inputs: what changes it, and what does not."""

from __future__ import annotations

from generator.ops import paging
from generator.ops.op_types.gemm import op as gemm
from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.mamba_ssu import op as mamba_ssu
from generator.running.source_hash import source_hash


def test_the_source_of_inputs_is_hashed_with_what_it_calls(monkeypatch):
    before = source_hash(gqa_paged.make_inputs)
    assert before == source_hash(gqa_paged.make_inputs)
    assert before != source_hash(gemm.make_inputs)
    # of the support, and what that one calls in turn
    monkeypatch.setattr(paging, "page_counts", paging.indptr)
    assert source_hash(gqa_paged.make_inputs) != before
    monkeypatch.undo()
    assert source_hash(gqa_paged.make_inputs) == before


def test_the_constants_that_inputs_depend_on_are_hashed(monkeypatch):
    before = source_hash(mamba_ssu.make_inputs)
    monkeypatch.setattr(mamba_ssu, "PAD_SLOT", -2)
    assert source_hash(mamba_ssu.make_inputs) != before
