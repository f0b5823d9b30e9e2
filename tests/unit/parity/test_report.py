"""What a comparison says: maps, the first divergence, values that are not finite."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from generator.parity import model_factory
from generator.parity.bounds import nmse, worst_row
from generator.parity.capture import dense
from generator.parity.levels import flag_odd
from generator.parity.page import page
from generator.parity.report import ComparedModel, parity_report
from generator.problems import Failure
from generator.reports import printed
from generator.reports.report import Status


def entry(layer: int | None, stage: str, **more: Any) -> dict[str, Any]:
    whole = {"definition": "rmsnorm_h64", "nmse": 0.0, "bound": 1e-12, "passed": True}
    return {"layer": layer, "stage": stage, **whole, **more}


BROKEN = entry(
    1, "act", nmse=0.5, passed=False, row=3, worst=[[3, 7, 1.5, 2.5]], row_error=0.5
)


def compared(*entries: dict[str, Any]) -> list[ComparedModel]:
    return [ComparedModel("llama", {"float32": {"stage": entries}}, ["gemm_n1_k1"], [])]


def test_the_first_divergence_is_said_and_framed() -> None:
    models = compared(entry(0, "act"), BROKEN, entry(1, "down"))
    report = parity_report("tiny", models)
    conclusion = report.conclude()
    assert conclusion.status is Status.FAILED
    said = (
        "layer 1, act (rmsnorm_h64): NMSE 5.0e-01, allowed 1.0e-12; at [3, 7] it is 1.5"
    )
    assert said in conclusion.summary
    assert "not covered: gemm_n1_k1" in conclusion.summary
    text = "".join(printed(report, "text"))
    assert "0!" in text
    html = page(report, models)
    assert html.count('class="heat broken first"') == 1


def test_a_stage_much_worse_than_in_other_layers_is_flagged() -> None:
    entries = [entry(layer, "act", nmse=1e-15) for layer in range(3)]
    entries[1]["nmse"] = 5e-13
    flag_odd(entries)
    said = "layer 1, act (rmsnorm_h64): NMSE 5.0e-13 is allowed, but over ten times"
    assert said in parity_report("tiny", compared(*entries)).conclude().summary
    assert [one["passed"] for one in entries] == [True, False, True]


def test_a_model_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_factory, "available_bytes", lambda device: 4 << 20)
    said = "needs over 0 GiB, 0 GiB may be used"
    with (
        pytest.raises(Failure, match=said),
        model_factory._Allocating(with_windows=True),
    ):
        torch.empty(1024, 1024)


def test_large_experts_are_windows_of_one_matrix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_factory, "_LARGE", 8)
    with model_factory._Allocating(with_windows=True):
        experts = torch.empty(3, 2, 4)
    model_factory.elements(experts).copy_(torch.arange(16))
    assert experts[2].tolist() == [[8, 9, 10, 11], [12, 13, 14, 15]]


def test_values_that_are_not_finite_end_the_judging() -> None:
    odd = {"layer": 7, "stage": "qkv", "not_finite": True, "passed": False}
    report = parity_report("tiny", compared(entry(6, "qkv"), odd))
    why = (
        "layer 7, qkv: transformers' own values are not finite; the rest is not judged"
    )
    assert why in report.conclude().summary
    assert "NaN!" in "".join(printed(report, "text"))


def test_json_has_no_nan() -> None:
    odd = {**BROKEN, "nmse": math.nan}
    assert "NaN" not in "".join(
        printed(parity_report("tiny", compared(odd)), "json")
    ).replace('"nan"', "")


def test_errors_are_relative_to_what_is_expected() -> None:
    expected = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    assert nmse(expected * 1.1, expected) == pytest.approx(0.01)
    assert nmse(expected, expected) == 0.0
    assert math.isnan(nmse(expected * math.nan, expected))
    # a row of zeros counts against the mean of the rows
    row, error = worst_row(expected + torch.tensor([[0.0], [5.0]]), expected)
    assert (row, error) == (1, pytest.approx(4.0))


def test_a_choice_of_experts_is_a_matrix() -> None:
    weights, experts = torch.tensor([[0.75, 0.25]]), torch.tensor([[2, 0]])
    assert dense(weights, experts, 4).tolist() == [[0.25, 0.0, 0.75, 0.0]]
