"""Oracles of one definition: their long case catches what is right for few rows alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from generator.running.own_oracle import BackwardOracle, TextOracle, long_case
from kernel_judge import checks
from kernel_judge.definition import LIMITS, Definition, Interface
from kernel_judge.subject import Op, Subject

INTERFACE = Interface(
    {"x": "float32[rows, width]", "grad_y": "float32[rows, width]"},
    {"grad_x": "float32[rows, width]"},
)
DEFINITION = Definition("square_backward", "square_backward", INTERFACE, {"width": 8})


def forward(x: torch.Tensor) -> torch.Tensor:
    return x * x


def backward(x: torch.Tensor, grad_y: torch.Tensor) -> torch.Tensor:
    return 2.0 * x * grad_y


BY_AUTOGRAD = BackwardOracle(
    lambda: forward, ("x",), ("grad_y",), {"grad_x": "x"}, saved={}
)
BY_TEXT = TextOracle(lambda: backward)


def failures(oracle: BackwardOracle | TextOracle, limit: int | None) -> list[str]:
    """Return the cases in which a run that is right up to a number of rows fails."""

    def run(x: torch.Tensor, grad_y: torch.Tensor) -> Any:
        y = backward(x, grad_y)
        y[limit:] = 0.0 if limit is not None else y[limit:]
        return y

    op = oracle.op(Op())
    subject = Subject(DEFINITION, op, lambda: run)
    subject = replace(subject, op=op)
    return [
        case.name
        for case in op.cases(DEFINITION)
        if checks.oracle(subject, subject.trial(case)).defect is not None
    ]


@pytest.mark.parametrize("oracle", [BY_AUTOGRAD, BY_TEXT])
def test_a_limit_of_rows_is_crossed(oracle: BackwardOracle | TextOracle) -> None:
    assert failures(oracle, None) == []
    for limit in (2, 64, 4096, 8192):
        assert "generic-long" in failures(oracle, limit)
    assert failures(oracle, 64) == ["generic-long"]


def test_the_long_case_is_as_long_as_its_bytes_allow() -> None:
    wide = replace(DEFINITION, axes={"width": 1 << 16})
    lengths = [long_case(one).axes["rows"] for one in (DEFINITION, wide)]
    assert lengths == [8_195, 35]
    assert long_case(DEFINITION).size == LIMITS
    fixed = replace(DEFINITION, axes={"width": 8, "rows": 4})
    assert long_case(fixed) is None
