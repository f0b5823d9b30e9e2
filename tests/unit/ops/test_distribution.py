"""The verdict on draws, and what the findings say."""

from __future__ import annotations

import re

import pytest
import torch

from generator.ops.op_types.sampling.distribution import Distribution
from generator.ops.op_types.sampling.law import laws_of
from kernel_judge.comparison.compare import ERROR, FAILED, PASSED
from kernel_judge.comparison.policy import Policy, Question, Repeating
from kernel_judge.definition import Case, Definition, Interface

ROWS, CALLS = 8, 200
DEFINITION = Definition(
    "d",
    "sampling",
    Interface({}, {"samples": "int64[batch_size]"}),
    {"vocab_size": 4},
)
PROBS = torch.tensor([0.5, 0.25, 0.125, 0.125])
INPUTS = {
    "probs": PROBS.repeat(ROWS, 1),
    "top_k": torch.tensor(4 * [2] + 4 * [0], dtype=torch.int32),
}
CASE = Case("c", "small", {"batch_size": ROWS}, {"calls": CALLS})
POLICY = Distribution({"kernel": lambda inputs: inputs["top_k"] <= 0})


ALL = PROBS.tolist()
HONEST = (ALL[:2], ALL)


def draws(seed=1, kept=HONEST):
    """Return draws of all calls: the first half of the rows by one law."""
    torch.manual_seed(seed)
    parts = [
        torch.multinomial(torch.tensor(k), CALLS * ROWS // 2, True).view(CALLS, -1)
        for k in kept
    ]
    return torch.cat(parts, dim=1).flatten()


def judge(actual, expected=None, source="oracle"):
    expected = laws_of(INPUTS) if expected is None else expected
    question = Question(DEFINITION, CASE, INPUTS, source)
    return POLICY.judge(actual, expected, question)


def test_it_is_a_policy_that_asks_for_more_calls():
    policy: Policy = POLICY
    assert isinstance(policy, Repeating)
    assert policy.calls(torch.zeros(ROWS, dtype=torch.int64), CASE) == CALLS
    assert policy.calls(torch.zeros(ROWS, 4), CASE) == 1
    assert policy.calls(None, CASE) == 1


def test_honest_draws_pass():
    result = judge(draws())
    assert result.verdict == PASSED, result.findings
    assert result.figures["draws"] == ROWS * CALLS
    assert result.figures["illegal_draws"] == 0
    # the law, its temperature, and of two kinds of pairs the equal ones and a table;
    # twice, and all laws
    assert result.figures["tests"] == 13
    assert 0 < result.as_dict()["p_value"] <= 1


def test_one_illegal_draw_fails_and_is_explained():
    wrong = draws()
    wrong[ROWS] = 3
    result = judge(wrong)
    assert result.verdict == FAILED
    (finding,) = result.findings
    assert finding == (
        "actual: k = 2: 1 of 800 draws are of 1 illegal tokens: token 3 is number 3 "
        "by probability, drawn 1 times"
    )
    wrong[ROWS] = 4
    assert "is none of the 4 tokens" in judge(wrong).findings[0]


def test_wrong_shares_name_the_tokens():
    result = judge(draws(kept=([0.5, 0.4], ALL)))
    assert result.verdict == FAILED
    text = result.findings[0]
    assert text.startswith("actual: k = 2: of 800 draws token 1 was drawn 3")
    assert "266.7 expected" in text
    assert "1 degrees of freedom" in text


def test_a_source_is_tested_as_well():
    good, wrong = draws(1), draws(2, ([0.4, 0.5], ALL))
    assert judge(good, draws(2), "other").verdict == PASSED
    result = judge(good, wrong, "other")
    assert result.verdict == FAILED
    assert result.findings[0].startswith("other: k = 2")
    assert any("against each other" in finding for finding in result.findings)


def test_rows_that_a_source_does_not_define_are_left_out():
    wrong = draws(2, (ALL[:2], [0.0, 0.0, 0.0, 1.0]))
    assert judge(draws(), wrong, "other").verdict == FAILED
    result = judge(draws(), wrong, "kernel/x")
    assert result.verdict == PASSED, result.findings
    assert result.figures["rows_left_out"] == 4
    question = Question(
        DEFINITION, CASE, {**INPUTS, "top_k": torch.zeros(ROWS)}, "kernel"
    )
    assert POLICY.judge(draws(), draws(), question).verdict == ERROR


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "a tensor is expected, got NoneType"),
        (draws().int(), "dtype torch.int32, declared torch.int64"),
        (draws()[1:], "expected draws of 8 rows"),
        (draws().view(-1, ROWS), "expected draws of 8 rows"),
        (draws()[:0], "expected draws of 8 rows"),
        (draws().double(), r"shape \[1600\]"),
    ],
)
def test_what_are_no_draws_is_refused(value, text):
    (finding,) = judge(value).findings
    assert re.search(f"^actual: .*{text}", finding)


def filtered():
    probabilities = INPUTS["probs"].clone()
    probabilities[:4, 2:] = 0.0
    return probabilities / probabilities.sum(dim=1, keepdim=True)


def test_probabilities_are_compared_themselves():
    assert judge(draws(), filtered(), "other").verdict == PASSED
    wrong = filtered()
    wrong[0] = torch.tensor([0.6666, 0.3334, 0.0, 0.0])
    (finding,) = judge(draws(), wrong, "other").findings
    assert finding.startswith("other: row 0, k = 2: token 1 is off by 0.0002")
    wrong = filtered()
    wrong[1, 3] = 1e-3
    (finding,) = judge(draws(), wrong, "other").findings
    assert "row 1, k = 2: illegal tokens have 0.000999" in finding
    wrong[1] = torch.nan
    assert judge(draws(), wrong, "other").verdict == FAILED


def test_the_share_of_tied_tokens_is_bounded():
    inputs = {"probs": INPUTS["probs"], "top_k": torch.full((ROWS,), 3)}
    question = Question(DEFINITION, CASE, inputs, "oracle")

    def verdict(*weights):
        laws = laws_of(inputs)
        return POLICY.judge(draws(3, (list(weights), list(weights))), laws, question)

    assert verdict(0.5, 0.25, 0.125, 0.0).passed
    assert verdict(0.5, 0.25, 0.0, 0.125).passed
    assert verdict(0.5, 0.25, 0.125, 0.125).passed
    few, many = verdict(0.5, 0.25, 0.0, 0.0), verdict(0.5, 0.25, 0.25, 0.2)
    assert few.verdict == many.verdict == FAILED
    assert "0 of 1600 draws are of tokens at the boundary" in few.findings[0]
    assert "expected 14.29 % to 25.00 %" in many.findings[0]


def test_rare_tokens_are_tested_by_position_too():
    probs = torch.full((1, 4096), 1 / 4096)
    inputs = {"probs": probs.repeat(ROWS, 1), "top_p": torch.ones(ROWS)}
    question = Question(DEFINITION, CASE, inputs, "oracle")
    torch.manual_seed(4)
    honest = torch.randint(0, 4096, (ROWS * CALLS,))
    assert POLICY.judge(honest, laws_of(inputs), question).passed
    # never the upper quarter; ties are in order of position, so shuffle nothing
    lower = torch.randint(0, 3072, (ROWS * CALLS,))
    result = POLICY.judge(lower, laws_of(inputs), question)
    assert any("rare tokens pooled by position" in f for f in result.findings)


def test_a_token_that_is_never_drawn_shows_among_many():
    probs = torch.full((1, 64), 1 / 64)
    inputs = {"probs": probs.repeat(ROWS, 1), "top_p": torch.ones(ROWS)}
    question = Question(DEFINITION, CASE, inputs, "oracle")
    torch.manual_seed(4)
    honest = torch.randint(0, 64, (ROWS * CALLS,))
    assert POLICY.judge(honest, laws_of(inputs), question).passed
    result = POLICY.judge(honest.where(honest != 9, 8), laws_of(inputs), question)
    assert any("token 9 was never drawn" in f for f in result.findings)
    # spread over the others χ² alone lets it pass
    missing = honest.where(honest != 9, torch.randint(10, 64, honest.shape))
    (finding,) = POLICY.judge(missing, laws_of(inputs), question).findings
    assert finding.startswith("actual: p = 1: of 1600 draws token 9 was never drawn: ")
