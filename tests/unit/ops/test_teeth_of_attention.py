"""The attention cases turn every plausible fault of a reference red."""

from __future__ import annotations

import pytest

from generator.ops.op_types.gqa_paged import op as gqa_paged
from generator.ops.op_types.mla_paged import op as mla_paged
from tests.builders import class_of, loaded, oracle_failures, run_of, sized
from tests.unit.ops.survivors import with_defect

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
    return definition, run_of(loaded(name).reference)


def test_the_mask_aligned_top_left_is_red_exactly_where_lengths_differ():
    definition, run = setup(GQA["prefill"])
    wrong = with_defect(definition, run, "mask aligned top-left")
    failed = oracle_failures(class_of(gqa_paged, definition, wrong), SIZES)
    assert failed == [
        "chunked",
        "more-queries-than-keys",
        "empty-sequence",
        "extreme-logits",
        "other-scale",
    ]


def test_the_last_page_taken_as_full_is_red_in_every_case():
    definition, run = setup(GQA["decode"])
    full = with_defect(definition, run, "last page full")
    cls = class_of(gqa_paged, definition, full)
    assert oracle_failures(cls, SIZES) == [
        case.name for case in cls.op.cases(definition) if case.size in SIZES
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
    definition, run = setup(which)
    wrong = with_defect(definition, run, "output of no key not a number")
    failed = oracle_failures(class_of(op, definition, wrong), SIZES)
    assert failed == [expected]


def test_a_finite_lse_in_a_row_without_keys_is_red():
    definition, run = setup(GQA["decode"])
    wrong = with_defect(definition, run, "LSE of no key a finite number")
    failed = oracle_failures(class_of(gqa_paged, definition, wrong), SIZES)
    assert failed == ["empty-sequence"]
