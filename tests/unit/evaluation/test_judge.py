"""How long the judge asks: until its questions are over, or to the first wrong answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from tests.builders import CPU, loaded
from tools.evaluate_mutants import InProcess


@pytest.mark.parametrize("until_wrong", [False, True])
def test_nothing_is_asked_after_a_wrong_answer_that_ends_it(until_wrong: bool) -> None:
    asked = rounds_of(loaded("rmsnorm_h128"), [], Path(), CPU, 5)
    calls = []

    def wrong(x, weight):
        calls.append(len(x))
        return torch.zeros_like(x)

    judge = Judge(InProcess(wrong), asked, CPU, False, 5, until_wrong=until_wrong)
    found = [v.verdict for v in judge.judge()]
    if until_wrong:
        assert len(calls) == len(found) == 1
    else:
        assert len(found) > 20
    assert "INCORRECT_NUMERICAL" in found
