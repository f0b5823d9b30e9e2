"""Solutions whose gates overflow float32 are refused: no published case has such gates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from generator.evaluation.judge import Judge
from generator.evaluation.rounds import EvaluationRounds, rounds_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess

_GATED, _STEPS = "open-gates", "huge-steps"


def share_of_exponentials(x: torch.Tensor) -> torch.Tensor:
    return x.exp() / (1.0 + x.exp())


def silu_of_exponentials(x: torch.Tensor) -> torch.Tensor:
    return x * share_of_exponentials(x)


def logarithm_of_a_sum(x: torch.Tensor, *_: Any) -> torch.Tensor:
    return (1.0 + x.exp()).log()


@contextmanager
def of_shares() -> Iterator[None]:
    functional = torch.nn.functional
    with (
        patch.object(torch, "sigmoid", share_of_exponentials),
        patch.object(torch.Tensor, "sigmoid", share_of_exponentials),
        patch.object(functional, "silu", silu_of_exponentials),
    ):
        yield


@contextmanager
def of_steps() -> Iterator[None]:
    with patch.object(torch.nn.functional, "softplus", logarithm_of_a_sum):
        yield


OVERFLOWS: tuple[tuple[str, str, Callable[[], Any]], ...] = (
    ("gated_rmsnorm_h128", _GATED, of_shares),
    ("fused_rmsnorm_silu_eps_1em6_h384", _GATED, of_shares),
    ("mamba1_update_d1536_s16", _STEPS, of_steps),
    ("mamba_ssu_decode_h64_d64_s128_ng4", _STEPS, of_steps),
    ("mamba_ssd_prefill_h128_d64_s128_ng8", _STEPS, of_steps),
    ("kda_decode_h8_d128", _STEPS, of_steps),
    ("gdn_decode_qk16_v32_d128_k_last", _STEPS, of_steps),
)


def reasons(asked: EvaluationRounds, run: Callable[..., Any]) -> list[str]:
    judge = Judge(InProcess(run), asked, CPU, False, 13)
    return [one.reason for one in judge.judge() if one.verdict != "PASSED"]


@pytest.mark.parametrize(("name", "case", "overflows"), OVERFLOWS)
def test_gates_that_overflow_are_refused(
    name: str, case: str, overflows: Callable[[], Any]
) -> None:
    run = run_of(loaded(name).reference)

    def wrong(*given: Any) -> Any:
        with overflows():
            return run(*given)

    every = replace(rounds_of(loaded(name), [], Path(), CPU, 13), relations=[])
    published = [one for one in every.rounds if one[0] in ("one-row", "one-token")]
    assert reasons(replace(every, rounds=published), wrong) == []
    assert reasons(every.of_case(case), run) == []
    assert reasons(every.of_case(case), wrong)
