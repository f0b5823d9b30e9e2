"""The attention cases turn every plausible fault of a reference red."""

from __future__ import annotations

import math

import pytest
import torch

from generator.ops import gqa_paged, mla_paged
from tests.builders import class_of, loaded, oracle_failures, run_of, sized
from tests.unit.ops.mutants import (
    MASKS,
    interleaved,
    of_caches,
    of_inputs,
    of_outputs,
    on_inputs,
    with_mask,
)

# few heads suffice: test_oracles has the real sizes
SMALL_GQA = {"num_qo_heads": 6, "num_kv_heads": 2, "head_dim": 16}
GQA = {
    "decode": ("gqa_paged_decode_h32_kv8_d128_ps64", SMALL_GQA),
    "decode ps1": ("gqa_paged_decode_h24_kv8_d128_ps1", SMALL_GQA),
    "prefill": ("gqa_paged_prefill_causal_h32_kv8_d128_ps64", SMALL_GQA),
    "prefill ps1": ("gqa_paged_prefill_causal_h24_kv8_d128_ps1", SMALL_GQA),
    "decode ps4": (
        "gqa_paged_decode_h32_kv8_d128_ps64",
        {**SMALL_GQA, "page_size": 4},
    ),
}
MLA = {
    "decode": ("mla_paged_decode_h16_ckv512_kpe64_ps64", {"num_qo_heads": 2}),
    "decode ps1": ("mla_paged_decode_h8_ckv512_kpe64_ps1", {"num_qo_heads": 2}),
    "prefill": ("mla_paged_prefill_causal_h16_ckv512_kpe64_ps64", {"num_qo_heads": 2}),
    "prefill ps1": (
        "mla_paged_prefill_causal_h8_ckv512_kpe64_ps1",
        {"num_qo_heads": 2},
    ),
}
SIZES = ("small",)


def setup(which):
    name, axes = which
    definition = sized(name, **axes)
    return definition, loaded(name).reference, list(definition.interface.inputs)


def survivors(op, definition, run, mutants):
    """Return the mutants that every case lets pass; the true reference must be one."""
    assert oracle_failures(class_of(op, definition, run)) == []
    return [
        name
        for name, mutant in mutants.items()
        if not oracle_failures(class_of(op, definition, mutant(run)), SIZES)
    ]


@pytest.mark.parametrize("which", GQA.values(), ids=GQA)
def test_no_fault_of_gqa_survives(which):
    definition, reference, names = setup(which)
    mutants = {
        **of_outputs(),
        **of_inputs(names, definition.axes["page_size"]),
        **of_caches(names, "k_cache", "v_cache"),
        "query head h reads KV head h % kv": interleaved(
            definition.axes["num_kv_heads"]
        ),
    }
    assert len(mutants) >= 17
    assert survivors(gqa_paged, definition, run_of(reference), mutants) == []


@pytest.mark.parametrize("which", MLA.values(), ids=MLA)
def test_no_fault_of_mla_survives(which):
    definition, reference, names = setup(which)
    latent = 1.0 / math.sqrt(
        definition.axes["head_dim_ckv"] + definition.axes["head_dim_kpe"]
    )
    mutants = {
        **of_outputs(),
        **of_inputs(names, definition.axes["page_size"]),
        "rotary part left out": on_inputs(names, lambda i: {"q_pe": 0 * i["q_pe"]}),
        "latent part left out": on_inputs(names, lambda i: {"q_nope": 0 * i["q_nope"]}),
        "scale of the latent": on_inputs(names, lambda i: {"sm_scale": latent}),
        "keys of the next page": on_inputs(
            names, lambda i: {"kpe_cache": i["kpe_cache"].roll(1, dims=0)}
        ),
    }
    assert len(mutants) >= 17
    assert survivors(mla_paged, definition, run_of(reference), mutants) == []


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("page", ["prefill", "prefill ps1"])
@pytest.mark.parametrize(("op", "table"), [(gqa_paged, GQA), (mla_paged, MLA)])
def test_no_fault_of_the_mask_survives(op, table, page, mask):
    definition, reference, _ = setup(table[page])
    wrong = run_of(with_mask(reference, mask))
    assert oracle_failures(class_of(op, definition, wrong), SIZES)


def test_the_mask_aligned_top_left_is_red_exactly_where_lengths_differ():
    definition, reference, _ = setup(GQA["prefill"])
    wrong = run_of(with_mask(reference, "mask aligned top-left"))
    failed = oracle_failures(class_of(gqa_paged, definition, wrong), SIZES)
    assert failed == ["chunked", "empty-sequence", "extreme-logits"]


def test_the_last_page_taken_as_full_is_red_in_every_case():
    definition, reference, names = setup(GQA["decode"])
    full = of_inputs(names, 64)["last page taken as full"](run_of(reference))
    cls = class_of(gqa_paged, definition, full)
    assert oracle_failures(cls, SIZES) == [
        case.name for case in cls.cases(definition) if case.size in SIZES
    ]


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        (GQA["decode"], "empty-sequence"),
        (GQA["prefill"], "more-queries-than-keys"),
        (MLA["prefill"], "more-queries-than-keys"),
    ],
)
def test_nan_in_a_row_without_keys_is_red(which, expected):
    # what softmax over no key gives, where nobody thought of it
    op = mla_paged if which[0].startswith("mla") else gqa_paged
    definition, reference, _ = setup(which)
    run = run_of(reference)

    def wrong(*given):
        output, lse = run(*given)
        blind = lse == -math.inf
        output[blind] = math.nan
        return output, lse

    failed = oracle_failures(class_of(op, definition, wrong), SIZES)
    assert failed == [expected]


def test_a_finite_lse_in_a_row_without_keys_is_red():
    definition, reference, _ = setup(GQA["decode"])
    run = run_of(reference)

    def wrong(*given):
        output, lse = run(*given)
        return output, torch.nan_to_num(lse, neginf=-5e4)

    failed = oracle_failures(class_of(gqa_paged, definition, wrong), SIZES)
    assert failed == ["empty-sequence"]
