"""The indexer of dsa_paged: faults planted in the reference and its outputs."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
import torch

from generator.ops.op_types.dsa_paged import op as dsa_paged
from generator.ops.op_types.dsa_paged.indexer import (
    ERRORS,
    exact_scores,
    indexer_rows,
    unpacked,
    visible_ids,
)
from generator.ops.op_types.dsa_paged.sglang_logits import logits_deep_gemm
from kernel_judge.obstacle import Unavailable
from tests.builders import (
    cases_of,
    class_of,
    compare_all,
    known,
    loaded,
    of_flashinfer,
    oracle_failures,
    replaced,
    run_of,
    sized,
    trial_of,
)

NAME = "dsa_topk_indexer_fp8_h64_d128_topk2048_ps64"
SMALL = sized(NAME, num_index_heads=8, topk=128, page_size=16)
REFERENCE = replaced(loaded(NAME).reference, "TOPK = 2048", "TOPK = 128")
PAGES = "block_table[b, : (seq_len + page_size - 1) // page_size]"
# fault → the text and what replaces it
FAULTS = {
    "weights of other heads": ("weights[b]", "weights[b].flip(0)"),
    "weights in bfloat16": ("weights[b]", "weights[b].bfloat16().float()"),
    "dot products in bfloat16": ("dots.relu()", "dots.bfloat16().float().relu()"),
    "one page too few": (
        "(seq_len + page_size - 1) // page_size].long()",
        "max(seq_len // page_size, 1)].long().repeat_interleave(2)",
    ),
    "one id too few": ("min(TOPK, seq_len)", "max(min(TOPK, seq_len) - 1, 0)"),
    "padding in front": (
        "topk_indices[b, : len(slots)]",
        "topk_indices[b, TOPK - len(slots) :]",
    ),
}
# what does not change the order of the scores is no fault
HARMLESS = {
    "mean over the heads": (".sum(dim=0)", ".mean(dim=0)"),
    "keys scaled first": (
        "[:seq_len].float()",
        "[:seq_len].float() * 4",
    ),
    "ids in their own order": (
        "best = scores.topk(min(TOPK, seq_len)).indices",
        "best = scores.topk(min(TOPK, seq_len)).indices.sort().values",
    ),
    "another choice of ties": (
        "scores.topk(min(TOPK, seq_len)).indices",
        "seq_len - 1 - scores.flip(0).topk(min(TOPK, seq_len)).indices",
    ),
}


def rendered(run, definition=SMALL):
    return class_of(dsa_paged, definition, run)


def failures(text):
    return oracle_failures(rendered(run_of(text)))


def test_the_reference_passes_every_case():
    assert failures(REFERENCE) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(fault):
    assert failures(replaced(REFERENCE, *FAULTS[fault]))


@pytest.mark.parametrize("change", HARMLESS)
def test_what_keeps_the_set_is_no_fault(change):
    assert failures(replaced(REFERENCE, *HARMLESS[change])) == []


def test_reading_behind_the_last_token_is_caught():
    stale = replaced(REFERENCE, "head_dim)[:seq_len]", "head_dim)")
    stale = replaced(stale, ".flatten()[:seq_len]", ".flatten()")
    assert failures(stale)


def _beyond(ids, inputs):
    ids[0, 0] = inputs["k_index_cache_fp8"].shape[0] * ids.shape[1]
    return ids


def _hole(ids, inputs):
    return torch.where(ids.roll(1, 1) == ids[:, :1], -1, ids)


OUTPUTS = {
    "an id out of range": _beyond,
    "-1 in the middle": _hole,
}


@pytest.mark.parametrize("fault", OUTPUTS)
def test_a_fault_of_the_output_is_caught(fault):
    run = run_of(REFERENCE)

    def faulty(*given):
        inputs = dict(zip(SMALL.interface.inputs, given, strict=True))
        return OUTPUTS[fault](run(*given), inputs)

    assert oracle_failures(rendered(faulty))


def inputs_of(name, definition=SMALL):
    cls = rendered(run_of(REFERENCE), definition)
    (case,) = (c for c in cls.op.cases(definition) if c.name == name)
    return trial_of(cls, case).inputs


def test_relu_decides_about_half_of_the_dot_products():
    inputs = inputs_of("ragged", known(NAME))
    keys, _ = unpacked(inputs, visible_ids(inputs, 0))
    negative = (keys @ inputs["q_index_fp8"][0].double().T < 0).double().mean()
    assert 0.3 < negative < 0.7


def test_scores_are_well_conditioned():
    inputs = inputs_of("ragged", known(NAME))
    for row in indexer_rows(known(NAME), inputs, ["reference"]):
        if len(row.ids) < 2:
            continue
        spread = float(row.scores.std())
        assert float(row.errors["reference"].max()) < 1e-3 * spread


@pytest.mark.parametrize("definition", [SMALL, known(NAME)], ids=["small", "real"])
def test_the_scores_at_the_edge_are_tied_in_every_row_of_that_case(definition):
    inputs, k = inputs_of("ties", definition), definition.axes["topk"]
    for row in range(2):
        scores = exact_scores(inputs, row).sort(descending=True).values
        assert int((scores == scores[k]).sum()) > 8
        assert scores[k] == scores[k - 1]


def test_cases_leave_tokens_out_and_have_rows_to_fill():
    lens = torch.cat([inputs_of(c.name)["seq_lens"] for c in cases_of(rendered(None))])
    topk = SMALL.axes["topk"]
    assert {0, 1, topk - 1, topk, topk + 1} <= set(lens.tolist())


def test_bytes_are_those_of_the_page_layout():
    inputs = inputs_of("one-token")
    cache = inputs["k_index_cache_fp8"]
    page = cache[1].reshape(-1)
    keys, scales = unpacked(inputs, torch.tensor([16 + 3]))
    by_hand = page[3 * 128 : 4 * 128].view(torch.float8_e4m3fn)
    assert torch.equal(keys[0], by_hand.double())
    start = 16 * 128 + 3 * 4
    assert scales.item() == page[start : start + 4].view(torch.float32).item()
    # a key's largest element is fp8's largest number
    assert keys.abs().max() == 448.0


def test_every_row_is_held_against_the_kernels():
    inputs = inputs_of("empty-sequence")
    assert dsa_paged.defined_rows(SMALL, inputs).tolist() == [True] * 3


def test_errors_are_bounded_for_every_source_that_may_be_asked():
    sources = {f"flashinfer/{b.name}" for b in dsa_paged.flashinfer_backends(SMALL)}
    sources |= {f"sglang/{b.name}" for b in dsa_paged.sglang_backends(SMALL)}
    assert sources | {"reference", "oracle", "sglang/deep_gemm"} == set(ERRORS)


def chooser(scores, table, lens, k, *, deterministic, page_size):
    """Stand in for FlashInfer's: choose within the lengths, translate the pages."""
    assert scores.dtype == torch.float32
    assert table.dtype == lens.dtype == torch.int32
    assert deterministic
    ids = torch.full((len(scores), k), -1, dtype=torch.int32)
    for row, length in enumerate(lens.tolist()):
        best = scores[row, :length].topk(min(k, length)).indices
        page = table[row].long()[best // page_size]
        ids[row, : len(best)] = (page * page_size + best % page_size).int()
    return ids


def test_the_adapter_lets_flashinfer_choose(monkeypatch):
    stub = SimpleNamespace(top_k_page_table_transform=chooser)
    monkeypatch.setitem(sys.modules, "flashinfer", stub)
    cls = rendered(run_of(REFERENCE))
    for case in cases_of(cls, ("small", "medium")):
        trial = trial_of(cls, case)
        made = of_flashinfer(cls, trial, "top-k")
        compare_all(cls.subject(), trial, trial.outputs, (made,), "flashinfer/top-k")


def test_two_sources_are_held_against_each_other():
    cls = rendered(run_of(REFERENCE))
    trial = trial_of(cls, cases_of(cls, ("medium",))[0])
    outputs = trial.outputs
    subject = cls.subject()
    compare_all(subject, trial, outputs, outputs, "flashinfer/top-k", "sglang/bf16")


def test_deep_gemm_is_asked_only_where_it_is_installed(monkeypatch):
    def names(found):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: found)
        return [b.name for b in dsa_paged.sglang_backends(SMALL)]

    assert names(None) == ["fp32", "bf16"]
    assert names(object()) == ["fp32", "bf16", "deep_gemm"]


def test_a_deep_gemm_that_does_not_load_is_a_reason_to_skip(monkeypatch):
    monkeypatch.setitem(sys.modules, "deep_gemm", None)
    with pytest.raises(Unavailable, match="deep_gemm: import failed"):
        logits_deep_gemm(inputs_of("one-token"))
