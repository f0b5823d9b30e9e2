"""The page of two recordings counts what moved by kernel."""

from __future__ import annotations

from generator.ground_truth.recording_differences import (
    Drift,
    RecordingDifferences,
    differences_report,
)
from generator.reports import printed


def drift(case: str, changed: int, nmse: float, oracle: float | None) -> Drift:
    labels = ("flashinfer/fa2@0.6@GPU", "flashinfer/fa2@0.7@GPU")
    names = ("norm", "d", case, "y", *labels)
    return Drift(*names, 9, changed, nmse, nmse, None, oracle)


def test_a_page_says_how_much_of_each_kernel_moved_and_how_far() -> None:
    drifts = (
        drift("a", 0, 0.0, 1e-9),
        drift("b", 3, 0.5, 1e-6),
        drift("c", 0, 0, None),
    )
    found = RecordingDifferences(drifts, 1)
    page = "".join(printed(differences_report(found, is_page=True), "markdown"))
    (row,) = [line for line in page.splitlines() if "fa2" in line and line[0] == "|"]
    assert row.endswith("| 1 | 3 | 1 | 0.5 | ? | 1e-06 |")
    assert "1 of 3 outputs of 1 definition changed." in page
    assert page.count("elements changed") == 1
