"""Solutions that are off in one direction: what they return is larger, or shifted, throughout.

All but the activation's, whose bounds are its rounding, are within every other bound.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.evaluation.rounds import rounds_of
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess, UntilWrong, Wrong

Change = Callable[[torch.Tensor], torch.Tensor]


def reason(name: str, change: Change) -> str:
    """Return why a solution is refused whose first output is changed; empty if not."""
    run = run_of(loaded(name).reference)

    def changed(*given: Any) -> Any:
        found = run(*given)
        outputs = found if isinstance(found, tuple) else (found,)
        first = change(outputs[0].double()).to(outputs[0].dtype)
        return (first, *outputs[1:]) if len(outputs) > 1 else first

    asked = rounds_of(loaded(name), [], Path(), CPU, 11)
    try:
        UntilWrong(InProcess(changed), asked, CPU, False, 11).judge()
    except Wrong as wrong:
        return wrong.reason
    return ""


def larger(out: torch.Tensor) -> torch.Tensor:
    return out * 1.003


def slightly_larger(out: torch.Tensor) -> torch.Tensor:
    # rounded twice: the norm's error stays below what is allowed
    return out * 1.0025


def smaller(out: torch.Tensor) -> torch.Tensor:
    return out * 0.997


def much_smaller(out: torch.Tensor) -> torch.Tensor:
    # much more than a second rounding: a factor is named beside wrong elements
    return out * 0.99


def shifted(out: torch.Tensor) -> torch.Tensor:
    return out + 0.001


IN_ONE_DIRECTION: tuple[tuple[str, Change], ...] = (
    ("gqa_single_prefill_causal_h16_kv2_d256", larger),
    ("gqa_single_prefill_causal_h16_kv2_d256", smaller),
    ("gqa_paged_decode_h32_kv8_d128_ps64", larger),
    ("allreduce_add_rmsnorm_tp2_h2048", slightly_larger),
    ("causal_conv1d_update_d4096_w4", shifted),
    ("silu_and_mul_i512", much_smaller),
)


@pytest.mark.parametrize(("name", "change"), IN_ONE_DIRECTION)
def test_what_is_off_in_one_direction_is_refused(name: str, change: Change) -> None:
    assert "errors without a sign explain" in reason(name, change)


@pytest.mark.parametrize(
    "name", ["gqa_single_prefill_causal_h16_kv2_d256", "causal_conv1d_update_d4096_w4"]
)
def test_an_honest_reference_is_not(name: str) -> None:
    assert reason(name, lambda out: out) == ""
