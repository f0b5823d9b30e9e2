"""What a comparison says: maps, the first divergence, values that are not finite."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from generator.parity.bounds import nmse, worst_row
from generator.parity.making import _load
from generator.parity.page import page
from generator.parity.report import Compared, parity_report
from generator.parity.subject import dense
from generator.problems import Failure
from generator.reports import printed
from generator.reports.report import Status


def entry(layer: int | None, stage: str, **more: Any) -> dict[str, Any]:
    whole = {"definition": "rmsnorm_h64", "nmse": 0.0, "bound": 1e-12, "passed": True}
    return {"layer": layer, "stage": stage, **whole, **more}


BROKEN = entry(
    1, "act", nmse=0.5, passed=False, row=3, worst=[[3, 7, 1.5, 2.5]], row_error=0.5
)


def compared(*entries: dict[str, Any]) -> list[Compared]:
    return [Compared("llama", {"float32": {"stage": entries}}, ["gemm_n1_k1"], [])]


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


@pytest.mark.parametrize(
    ("tensors", "said"),
    [
        (None, r"has no \*\.safetensors"),
        ({"weight": torch.ones(3, 2)}, r"weight is \[3, 2\]; the config says \[2, 3\]"),
        ({"weight": torch.ones(2, 3)}, "lacks bias, and 0 more"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    tmp_path: Path, tensors: dict[str, torch.Tensor] | None, said: str
) -> None:
    if tensors is not None:
        save_file(tensors, tmp_path / "model.safetensors")
    model = torch.nn.Linear(3, 2).requires_grad_(False)
    with pytest.raises(Failure, match=said):
        _load(model, tmp_path)


def test_truncated_weights_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(2, 3)}, file)
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(Failure, match=r"model\.safetensors can't be read"):
        _load(torch.nn.Linear(3, 2).requires_grad_(False), tmp_path)
