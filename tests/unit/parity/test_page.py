"""The page of heat maps: colours by the bound, counts, the verdict."""

from __future__ import annotations

from typing import Any

from generator.parity.page import page
from generator.parity.report import ComparedModel
from generator.reports.report import Conclusion, Report, Status


def entry(layer: int, nmse: float, passed: bool = True) -> dict[str, Any]:
    about = {"stage": "norm", "layer": layer, "definition": "rmsnorm_h128"}
    figures = {"nmse": nmse, "bound": 1e-4, "worst": [(0, 0, 1.0, 2.0)]}
    return {**about, **figures, "passed": passed}


def test_cells_are_coloured_by_their_bound_and_counted() -> None:
    entries = [entry(0, 1e-6), entry(1, 1e-4), entry(2, 1e-2, passed=False)]
    models = [ComparedModel("llama", {"bfloat16": {"stage": entries}}, (), ())]
    conclusion = Conclusion(Status.FAILED, "1 comparison, first broken: norm")
    report = Report("Parity", "trace-dataset parity", lambda: conclusion, {})
    text = page(report, models)
    assert '<p class="verdict failed">1 comparison, first broken: norm</p>' in text
    assert "llama, bfloat16: 2 of 3 within their bounds" in text
    heats = [text.count(f"--heat: {heat}%") for heat in (0, 100)]
    assert heats == [1, 2]
    assert text.count("heat broken first") == 1
