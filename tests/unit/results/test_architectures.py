"""Where kernels agreed, and which versions are newer since."""

from __future__ import annotations

from dataclasses import replace

import pytest

from generator.results.architectures import (
    architecture,
    architectures_section,
    newest_versions,
    stale_versions,
)
from generator.results.evidence import Run, SourceEvidence
from generator.results.verification import VerificationLine
from tests.results import CPU, H200


def line(source="flashinfer/fa2", verdict="PASSED", machine=H200, stale=False):
    run = Run("2026-11-21", machine, {})
    figures = SourceEvidence(verdict, cases=1)
    return VerificationLine("gemm", "a", source, verdict, stale, run, figures, "")


def cells(*lines):
    (table,) = architectures_section(lines).tables
    (row,) = table.rows
    return dict(zip(table.columns, row.cells, strict=True))


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({"device": "cuda", "sm": "90"}, "SM90"),
        ({"device": "cuda", "sm": "94", "hip": "6.4"}, "ROCm"),
        ({"device": "cuda", "torch": "2.11.0+rocm6.4", "sm": "94"}, "ROCm"),
        ({"device": "cuda"}, ""),
        (CPU, ""),
    ],
)
def test_the_capability_of_an_amd_gpu_is_no_sm(machine, expected):
    assert architecture(machine) == expected


def test_empty_cells_are_there():
    found = cells(line())
    assert found["SM90"] == "1"
    assert [found[p] for p in ("SM80", "SM89", "SM100", "SM120", "ROCm")] == [""] * 5


def test_an_architecture_of_another_name_has_a_column():
    assert cells(line(machine={**H200, "sm": "103"}))["SM103"] == "1"


@pytest.mark.parametrize(
    "other",
    [
        line("oracle"),
        line("sglang/native"),
        line("recorded:flashinfer/fa2"),
        line(verdict="FAILED"),
        line(stale=True),
        line(machine=CPU),
    ],
)
def test_what_is_no_live_kernel_on_a_gpu_does_not_count(other):
    assert cells(other)["SM90"] == ""


def test_a_library_that_moved_is_named():
    older = {**H200, "flashinfer": "0.6.18"}
    newer = {**H200, "flashinfer": "0.6.18.post1"}
    newest = newest_versions([Run("", older, {}), Run("", newer, {})])
    (note,) = stale_versions(line(machine=older), newest)
    assert note == "stale-version: flashinfer 0.6.18, 0.6.18.post1 is on record"
    assert not [*stale_versions(line(machine=newer), newest)]
    assert not [*stale_versions(line("oracle", machine=older), newest)]


def test_torch_counts_for_its_own_kernels_alone():
    newest = {"torch": "2.12.0", "flashinfer": "0.6.18"}
    older = {**H200, "torch": "2.9.1+cu130", "flashinfer": "0.6.18"}
    assert [*stale_versions(line("pytorch", machine=older), newest)]
    assert not [*stale_versions(line(machine=older), newest)]


def test_a_cpu_s_versions_are_none_on_record():
    assert newest_versions([Run("", {**CPU, "torch": "9.9"}, {})]) == {}


def test_sizes_are_shown_where_they_are_known():
    from generator.results.verification_report import line_row

    one = line()
    assert "1" in line_row(one).cells
    compared = {"small": ("a", "b"), "workload": ("x",)}
    figures = replace(one.figures, compared=compared, skipped=2)
    shown = line_row(replace(one, figures=figures)).cells
    assert "2 small, 1 workload (+2 skipped)" in shown
