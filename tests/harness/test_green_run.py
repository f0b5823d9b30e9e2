"""A run in which all is right: what it records, skips, prints and imports."""

from __future__ import annotations

import re
import shutil

import pytest
import torch

from tests.builders import ROOT
from tests.harness.datasets import (
    DECODE,
    NORM,
    PREFILL,
    class_name,
    decode,
    norm,
    prefill,
)
from tests.harness.runs import by_status, render, run_pytest, table_of

# of the norm's cases the one that a CPU is not asked
TOO_LARGE = "far-past-limits"
LIVE = (
    "test_matches_flashinfer",
    "test_matches_sglang",
    "test_ground_truths_agree",
    "test_matches_cpu",
)


def test_it_exits_0_under_strict_in_two_processes(green):
    assert green.status == 0, green.stdout + green.stderr
    assert "3 of 3 definitions were compared" in green.stdout
    rows = table_of(green)
    assert rows["rmsnorm", "oracle"][:3] == ["1/1", "6", "6"]
    # four backends of decode and two of prefill
    assert rows["gqa_paged", "flashinfer"][:2] == ["0/2", "6"]
    assert set(by_status(green)) == {"passed", "skipped"}


def test_every_comparison_is_recorded_with_its_figures(green):
    records = [r for outcome in green.outcomes for r in outcome.comparisons]
    cases: dict[tuple[str, str], set[str]] = {}
    for record in records:
        key = (record["definition"], record["source"])
        cases.setdefault(key, set()).add(record["case"])
    with_others = {key for key in cases if not key[1].startswith("metamorphic:")}
    assert with_others == {(name, "oracle") for name in (NORM, DECODE, PREFILL)}
    for name, relation in (
        (NORM, "rows-scaled"),
        (DECODE, "kv-in-two-merged"),
        (PREFILL, "prefill-is-decode"),
    ):
        assert (name, f"metamorphic:{relation}") in cases
    assert {record["verdict"] for record in records} == {"PASSED"}
    assert len(cases[NORM, "oracle"]) == 6
    assert "past-limits" in cases[NORM, "oracle"]
    assert TOO_LARGE not in cases[NORM, "oracle"]
    lse = [
        record["max_abs"]
        for record in records
        if (record["definition"], record["source"]) == (PREFILL, "oracle")
        and record["output"] == "lse"
    ]
    assert lse
    assert max(lse) < 1e-4
    figures = {"nmse", "cosine", "norm_ratio", "hit_ratio", "max_rel", "worst"}
    assert all(figures <= record.keys() for record in records)
    related = [r for r in records if r["source"].startswith("metamorphic:")]
    assert all(record["reason"] for record in related)


def test_a_relation_is_no_content_for_strict(right):
    run = run_pytest(right, "--strict", "--device", "cpu", "-k", "test_metamorphic")
    assert run.functions(class_name(PREFILL), "passed") == {"test_metamorphic"}
    assert by_status(run).keys() == {"passed"}
    assert "\n0 of 3 definitions were compared\n" in run.stdout
    assert run.status == 1


def test_nothing_unavailable_is_reported_as_passed(green):
    for outcome in green.outcomes:
        if outcome.function in LIVE:
            assert outcome.status == "skipped"
            assert outcome.case.startswith("unavailable")
            assert outcome.comparisons == ()
        elif outcome.function == "test_matches_recorded":
            assert (outcome.status, outcome.case) == ("skipped", "missing")
        elif (outcome.test_class, outcome.case) == (class_name(NORM), TOO_LARGE):
            assert outcome.function == "test_matches_oracle"
            assert (outcome.status, outcome.comparisons) == ("skipped", ())
        else:
            assert outcome.status == "passed"


def test_every_skip_has_a_reason(green):
    skipped = by_status(green)["skipped"]
    assert {o.test_class for o in skipped} == {
        class_name(name) for name in (NORM, DECODE, PREFILL)
    }
    expected = (
        r"flashinfer: (not installed|import failed: |needs CUDA)|fewer than two |"
        r"sglang: not installed|it compares a GPU with the CPU|recorded: no "
    )
    large = [o for o in skipped if o.case == TOO_LARGE]
    assert [o.detail.partition("\n")[0] for o in large] == ["128 MiB are for a GPU"]
    for outcome in skipped:
        assert outcome in large or re.match(expected, outcome.detail), outcome
    cases = {o.case for o in skipped if o.test_class == class_name(DECODE)}
    assert {"unavailable-cuda-cores", "unavailable-fa2", "unavailable-fa3"} <= cases


def test_the_header_names_device_versions_and_providers(green):
    lines = green.stdout.splitlines()
    assert "reference tests: device cpu" in lines
    assert f"  torch {torch.__version__}, sizes as rendered" in lines
    for provider in ("flashinfer", "sglang", "pytorch"):
        (line,) = (line for line in lines if line.startswith(f"  {provider}:"))
        reason = r": (not installed|import failed: .+|needs CUDA, device is cpu)$"
        assert re.search(reason, line)


def test_a_copy_elsewhere_runs_by_python_alone(right, tmp_path):
    # absent.py makes the generator impossible to import
    copy = shutil.copytree(right, tmp_path / "elsewhere" / "references")
    (tmp_path / "elsewhere" / "absent.py").write_text(
        (right.parent / "absent.py").read_text()
    )
    run = run_pytest(copy, "--device", "cpu", file="test_rmsnorm.py")
    assert run.status == 0, run.stdout + run.stderr
    assert {o.test_class for o in run.outcomes} == {class_name(NORM)}
    assert "\n1 of 1 definitions were compared\n" in run.stdout
    assert table_of(run)["rmsnorm", "oracle"][0] == "1/1"


def test_the_status_of_python_on_a_file_is_pytests(right, tmp_path):
    text = (right / "test_rmsnorm.py").read_text("utf-8")
    copy = shutil.copytree(right, tmp_path / "references")
    (tmp_path / "absent.py").write_text("")
    (copy / "test_rmsnorm.py").write_text(text.replace("EPS = 1e-06\n", "EPS = 1\n", 1))
    assert run_pytest(copy, "-q", "-x", file="test_rmsnorm.py").status == 1
    assert run_pytest(copy, "--no-such-option", file="test_rmsnorm.py").status == 4


def test_the_same_tests_run_with_the_package(green, tmp_path):
    folder = render(tmp_path, [norm(), decode(), prefill()], standalone=False)
    assert not (folder / "reference_support").exists()
    run = run_pytest(folder, "--strict", "-n", "2", "--device", "cpu", "-rs")
    assert run.status == 0, run.stdout + run.stderr
    assert outcomes_of(run) == outcomes_of(green)


def outcomes_of(run):
    """Return what became of each test, with the figures of its comparisons."""
    found = {}
    for o in run.outcomes:
        figures = [(c["source"], c["output"], c["nmse"]) for c in o.comparisons]
        found[o.test_class, o.function, o.case] = (o.status, figures)
    return found


@pytest.mark.parametrize(
    "name",
    ["kernel_judge/definition.py", "generator/running/harness.py"],
)
def test_the_support_is_that_of_the_package(right, name):
    source = (ROOT / name).read_text("utf-8")
    below = name.removeprefix("generator/")
    copy = (right / "reference_support" / below).read_text("utf-8")
    renamed = re.sub(r"\bgenerator\.", "reference_support.", source)
    renamed = re.sub(
        r"\b(from|import) kernel_judge\b",
        r"\1 reference_support.kernel_judge",
        renamed,
    )
    assert copy == renamed
