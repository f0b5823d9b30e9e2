"""The set policy: what a row of ids may differ in, and what it may not."""

from __future__ import annotations

import pytest
import torch

from generator.ops.topk_policy import REFERENCE, Candidates, TopKSet
from kernel_judge.comparison.policy import Question
from kernel_judge.definition import Case, Definition, Interface

DEFINITION = Definition("any", "any", Interface({}, {}), {})
# ids 10 ... 17; the third and the fourth share a score
IDS = torch.arange(10, 18)
SCORES = torch.tensor([9.0, 8.0, 7.0, 7.0, 5.0, 4.0, 3.0, 2.0], dtype=torch.float64)
BEST = [10, 11, 12]


def judge(actual, expected=BEST, error=0.0, source="oracle", other=None, kernel=0.0):
    """Return the verdict on one row; `kernel` is how far the source may be off."""
    errors = {
        REFERENCE: torch.full((8,), error, dtype=torch.float64),
        source: torch.full((8,), kernel, dtype=torch.float64),
    }
    policy = TopKSet(lambda *_: [Candidates(IDS, SCORES, errors)])
    question = Question(DEFINITION, Case("c", "small", {}), {}, source, other)
    given = (torch.tensor([row], dtype=torch.int32) for row in (actual, expected))
    return policy.judge(*given, question)


def test_the_same_set_passes_in_any_order():
    result = judge([12, 10, 11])
    assert result.passed
    assert result.figures == {"ids": 3.0, "tied_ids": 0.0}


@pytest.mark.parametrize("source", ["metamorphic:cpu", "metamorphic:strided"])
def test_a_further_call_of_the_reference_has_its_arithmetic(source):
    errors = {REFERENCE: torch.full((8,), 1.5, dtype=torch.float64)}
    policy = TopKSet(lambda *_: [Candidates(IDS, SCORES, errors)])
    question = Question(DEFINITION, Case("c", "small", {}), {}, source)
    first, near, far = (
        torch.tensor([row], dtype=torch.int32)
        for row in (BEST, [10, 11, 14], [10, 11, 17])
    )
    assert policy.judge(first, near, question).passed
    assert policy.judge(near, first, question).passed
    assert not policy.judge(first, far, question).passed


def test_a_tie_at_the_edge_is_free():
    result = judge([11, 10, 13])
    assert result.passed
    assert result.figures["tied_ids"] == 1.0


@pytest.mark.parametrize(
    ("ids", "finding"),
    [
        ([10, 11, 14], "left out: id 12 has 7, the chosen 14 has 5"),
        ([10, 12, 13], "left out: id 11 has 8"),
        ([15, 16, 17], "5 ids with a higher score"),
        ([10, 11, 11], "the id 11 is there more than once"),
        ([10, 11, 18], "no candidates, the first is 18"),
        ([10, 11, -7], "no candidates, the first is -7"),
        ([10, 11, -1], "2 ids, of 8 candidates 3 are wanted"),
        ([-1, -1, -1], "0 ids"),
    ],
)
def test_other_ids_fail(ids, finding):
    result = judge(ids)
    assert not result.passed
    assert finding in result.message("x")
    # a source that is wrong itself is told from a reference that is
    assert judge(BEST, ids, source="k").findings[0].startswith("expected: ")


def test_rounding_explains_no_more_than_both_errors_together():
    assert judge([10, 11, 14], error=1.0).passed
    assert not judge([10, 11, 14], error=0.99).passed
    # id 15 is 3 below the scores that are left out
    assert not judge([10, 11, 15], error=1.0).passed


def test_each_side_is_held_to_its_own_arithmetic():
    assert judge([10, 11, 12], [10, 11, 14], source="k", kernel=1.0).passed
    assert not judge([10, 11, 14], [10, 11, 12], source="k", kernel=1.0).passed
    assert judge([10, 11, 14], source="k", other="k", kernel=1.0).passed


def test_errors_may_differ_from_id_to_id():
    errors = torch.zeros(8, dtype=torch.float64)
    errors[6] = 4.0
    rows = [Candidates(IDS, SCORES, {REFERENCE: errors, "oracle": 0 * errors})]
    question = Question(DEFINITION, Case("c", "small", {}), {}, "oracle")

    def passes(ids):
        actual = torch.tensor([ids])
        policy = TopKSet(lambda *_: rows)
        return policy.judge(actual, torch.tensor([BEST]), question).passed

    assert passes([10, 11, 16])
    assert not passes([10, 11, 14])


def test_scores_that_are_no_number_fail():
    errors = torch.full((8,), torch.nan, dtype=torch.float64)
    rows = [Candidates(IDS, SCORES, {REFERENCE: errors, "oracle": 0 * SCORES})]
    question = Question(DEFINITION, Case("c", "small", {}), {}, "oracle")
    result = TopKSet(lambda *_: rows).judge(
        torch.tensor([BEST]), torch.tensor([BEST]), question
    )
    assert not result.passed


def test_fewer_candidates_than_k_are_all_there_with_padding_behind():
    row = [*range(10, 18), -1, -1]
    assert judge(row, row).passed
    assert "-1 stands before an id" in judge([*range(10, 17), -1, 17, -1], row).message(
        "x"
    )
    assert "7 ids, of 8 candidates 8" in judge([*row[:7], -1, -1, -1], row).message("x")


@pytest.mark.parametrize(
    ("actual", "finding"),
    [
        ([10, 11, 12], "a tensor is expected, got list"),
        (torch.tensor([10, 11, 12]), "shape [3]"),
        (torch.tensor([BEST, BEST]), "shape [2, 3], expected 1 rows"),
        (torch.tensor([BEST]).float(), "ids are integers, not torch.float32"),
    ],
)
def test_what_is_no_table_of_ids_fails(actual, finding):
    errors = {REFERENCE: 0 * SCORES, "oracle": 0 * SCORES}
    question = Question(DEFINITION, Case("c", "small", {}), {}, "oracle")
    policy = TopKSet(lambda *_: [Candidates(IDS, SCORES, errors)])
    result = policy.judge(actual, torch.tensor([BEST]), question)
    assert finding in result.message("x")


def test_a_source_of_another_dtype_or_length_fails():
    errors = {REFERENCE: 0 * SCORES, "k": 0 * SCORES}
    policy = TopKSet(lambda *_: [Candidates(IDS, SCORES, errors)])
    question = Question(DEFINITION, Case("c", "small", {}), {}, "k")
    best = torch.tensor([BEST], dtype=torch.int32)
    assert "dtype torch.int32" in policy.judge(best, best.long(), question).findings[0]
    longer = policy.judge(best, torch.tensor([[*BEST, 13]]), question)
    assert longer.findings == ("expected: shape [1, 4], expected 1 rows of one length",)
