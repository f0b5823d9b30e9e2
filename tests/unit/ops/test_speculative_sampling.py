"""Rows that one of two sources leaves undefined are not held against the other."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from generator.ops.op_types.speculative_sampling.op import (
    POLICIES,
    cases,
    make_inputs,
)
from kernel_judge.comparison.compare import ERROR, FAILED, PASSED
from kernel_judge.comparison.policy import Question
from kernel_judge.definition import Case
from kernel_judge.inputs.seeded_inputs import Stream
from tests.builders import known, sized

DEFINITION = known("chain_speculative_sampling_v129280")
VOCABULARY = DEFINITION.axes["vocab_size"]
CASE = Case("c", "small", {"batch_size": 2, "num_drafts": 1})


def probabilities(*tokens):
    """Return rows of which each has one token."""
    rows = torch.zeros(len(tokens), VOCABULARY)
    rows[torch.arange(len(tokens)), torch.tensor(tokens)] = 1.0
    return rows


@pytest.fixture
def inputs():
    """Return two chains of one draft, accepted for certain; the first draft had no 3."""
    return {
        "draft_probs": torch.stack([probabilities(7), probabilities(5)]),
        "draft_token_ids": torch.tensor([[3], [5]], dtype=torch.int32),
        "target_probs": torch.stack([probabilities(3, 9), probabilities(5, 9)]),
    }


RIGHT = torch.tensor([[3, 9], [5, 9]], dtype=torch.int32)
# as SGLang's kernel has it: a token without a draft is rejected
REJECTED = torch.tensor([[3, -1], [5, 9]], dtype=torch.int32)


@pytest.mark.parametrize(
    ("source", "other", "verdict"),
    [
        ("sglang/triton", None, PASSED),
        ("flashinfer", "sglang/triton", PASSED),
        ("sglang/triton", "flashinfer", PASSED),
        ("flashinfer", None, FAILED),
        ("flashinfer", "pytorch", FAILED),
    ],
)
def test_rows_that_either_source_leaves_undefined_are_passed_over(
    inputs, source, other, verdict
):
    question = Question(DEFINITION, CASE, inputs, source, other)
    result = POLICIES["accepted_token_ids"].judge(REJECTED, RIGHT, question)
    assert result.verdict == verdict, result.findings


def test_a_wrong_draw_of_a_defined_row_is_seen(inputs):
    wrong = torch.tensor([[3, 9], [5, 8]], dtype=torch.int32)
    about = DEFINITION, CASE, inputs, "flashinfer", "sglang/triton"
    result = POLICIES["accepted_token_ids"].judge(wrong, RIGHT, Question(*about))
    assert result.verdict == FAILED


def test_sources_that_define_no_row_together_prove_nothing(inputs):
    one = {name: value[:1] for name, value in inputs.items()}
    about = DEFINITION, CASE, one, "flashinfer", "sglang/triton"
    result = POLICIES["accepted_token_ids"].judge(
        RIGHT[:1], RIGHT[:1], Question(*about)
    )
    assert result.verdict == ERROR


@pytest.mark.parametrize(("rows", "drafts"), [(24, 2), (3, 1), (100, 4)])
def test_a_case_of_other_axes_than_its_chains_has_probabilities_in_each_row(
    rows, drafts
):
    """As a workload has: its rows and drafts are not those of the case that it stands in."""
    definition = sized("chain_speculative_sampling_v129280", vocab_size=600)
    case = next(c for c in cases(definition) if c.name == "one-draft")
    assert case.axes["batch_size"] == 24
    axes = {
        "batch_size": rows,
        "num_speculative": drafts,
        "num_speculative_plus_1": drafts + 1,
    }
    made = make_inputs(definition, replace(case, axes=axes), Stream("drafts"))
    for name in ("draft_probs", "target_probs"):
        sums = made[name].double().sum(dim=2)
        assert torch.allclose(sums, torch.ones_like(sums), atol=1e-5)
    # every token may be one that the workload drafts
    assert (made["draft_probs"] > 0).all()
