"""Evidence: what is kept of results, merged, written and read back."""

from __future__ import annotations

import json
import math

import pytest

from generator.dataset.paths import evidence_files, is_evidence
from generator.problems import Failure
from generator.results.evidence import (
    as_text,
    kept_runs,
    merge,
    read_evidence,
    runs_in,
)
from generator.results.kernel_evidence import KernelEvidence, compared_workloads
from generator.results.run_results import read_results, runs_of
from generator.results.sources import is_ground_truth
from tests.results import (
    CPU,
    H200,
    comparison,
    result,
    write_evidence,
    write_results,
)

NAME = "gemm_n8_k4"


def runs(tmp_path, *tests, **options):
    return runs_of(
        [read_results(write_results(tmp_path / "r.jsonl", *tests, **options))]
    )


def sources(tmp_path, *tests):
    (run,) = runs(tmp_path, *tests)
    return run.definitions[NAME].sources


FAILED = ("failed", "RuntimeError: no kernel image")
SKIPPED = ("skipped", "flashinfer: x needs SM100, device is SM90")


def test_a_source_is_summed_up_over_its_cases(tmp_path):
    found = sources(
        tmp_path,
        result("oracle", comparison(nmse=1.23456e-7)),
        result("oracle", comparison(case="b"), comparison(case="b", output="lse")),
        result("oracle", ending=SKIPPED),
    )["oracle"]
    assert (found.verdict, found.cases, found.skipped) == ("PASSED", 2, 1)
    assert (found.nmse, found.lse, found.seconds) == (1.23e-7, 1e-4, 4.5)


def test_evidence_says_at_which_cases_sizes_and_workloads(tmp_path):
    at = "0a1b2c3d-00112233"
    found = runs(
        tmp_path,
        result("flashinfer/fa2", comparison("flashinfer/fa2", case="b", size="small")),
        result(
            "flashinfer/fa2",
            comparison("flashinfer/fa2", case="a", size="small"),
            comparison("flashinfer/fa2", case="a", size="small", output="lse"),
            comparison(
                "flashinfer/fa2", case="workload x", size="workload", workload=at
            ),
            # of results that an earlier version wrote
            comparison("flashinfer/fa2", case="c"),
        ),
        machine=H200,
    )
    compared = {"small": ("a", "b"), "workload": (at,)}
    assert found[0].definitions[NAME].sources["flashinfer/fa2"].compared == compared
    (tmp_path / "verification").mkdir()
    (tmp_path / "verification/x.json").write_text(as_text(found))
    (again,) = read_evidence(tmp_path, "verification/x.json")
    assert again == found[0]


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"verdict": "FAILED"}, False),
        ({"not_given": ["lse"]}, False),
        ({"rewritten": ["inputs rewritten: x"]}, False),
    ],
)
@pytest.mark.parametrize(
    ("source", "machine"),
    [("flashinfer/fa2", H200), ("oracle", H200), ("flashinfer/fa2", CPU)],
)
def test_a_workload_counts_where_a_live_kernel_agreed_on_a_gpu(
    tmp_path, changes, counts, source, machine
):
    one = comparison(source, size="workload", workload="x", **changes)
    found = runs(tmp_path, result(source, one, sha256="ab"), machine=machine)
    counts = counts and (source, machine) == ("flashinfer/fa2", H200)
    assert compared_workloads(found, NAME, "ab") == ({"x"} if counts else set())
    assert compared_workloads(found, NAME, "cd") == set()


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (("PASSED", "PASSED"), "PASSED"),
        (("PASSED", "FAILED", "PASSED"), "FAILED"),
        (("FAILED", "ERROR", "PASSED"), "ERROR"),
    ],
)
def test_the_worst_verdict_and_the_worst_figures_count(tmp_path, verdicts, worst):
    records = [
        comparison(case=f"c{n}", verdict=verdict, nmse=10.0**-n)
        for n, verdict in enumerate(verdicts)
    ]
    lse = comparison(case="c0", output="lse", nmse=9.0, max_abs=1e-6)
    found = sources(tmp_path, result("oracle", *records, lse))["oracle"]
    assert (found.verdict, found.cases) == (worst, len(verdicts))
    assert (found.nmse, found.lse) == (1.0, 1e-6)
    odd = comparison(nmse=math.nan, hit_ratio=0.5)
    (found,) = sources(tmp_path, result("oracle", *records, odd)).values()
    assert math.isnan(found.nmse)
    assert found.hit_ratio == 0.5


def test_a_comparison_that_stopped_early_has_no_figures(tmp_path):
    stopped = comparison(verdict="FAILED")
    del stopped["nmse"], stopped["max_abs"]
    found = sources(tmp_path, result("oracle", stopped))["oracle"]
    assert (found.verdict, found.nmse, found.lse) == ("FAILED", None, None)


def test_figures_of_a_policy_are_a_range_and_the_hit_ratio_is_the_smallest(tmp_path):
    records = (
        comparison(p_value=0.2, hit_ratio=1.0, not_independent=["eps"]),
        comparison(p_value=0.9, hit_ratio=0.9, worst=[1], findings=["x"]),
    )
    found = sources(tmp_path, result("oracle", *records))["oracle"]
    assert found.figures == {"p_value": (0.2, 0.9)}
    assert (found.hit_ratio, found.not_independent) == (0.9, ("eps",))


def test_what_a_source_does_not_give_is_named_and_no_figure(tmp_path):
    found = sources(tmp_path, result("oracle", comparison(not_given=["lse"])))["oracle"]
    assert (found.not_given, found.lse, found.figures) == (("lse",), None, {})


def test_a_reference_held_against_itself_is_no_source(tmp_path):
    related = comparison("metamorphic:rows-reversed")
    wrong = {**related, "verdict": "FAILED"}
    name = "test_metamorphic"
    (run,) = runs(tmp_path, result(None, related, function=name))
    assert (run.definitions[NAME].sources, run.definitions[NAME].failed) == ({}, ())
    (run,) = runs(tmp_path, result(None, wrong, function=name, ending=FAILED))
    assert run.definitions[NAME].sources == {}
    assert run.definitions[NAME].failed == (name,)
    assert not is_ground_truth("metamorphic:rows-reversed")


def test_a_record_that_says_otherwise_is_no_agreement(tmp_path):
    passed = {"verdict": "PASSED", "cases": 1}
    entry = {"sha256": "0" * 64, "sources": {"metamorphic:x": passed}}
    run = {"date": "2026-11-21", "machine": {}, "definitions": {NAME: entry}}
    record = {"format": 1, "runs": [run]}
    (tmp_path / "verification").mkdir()
    (tmp_path / "verification/x.json").write_text(json.dumps(record))
    assert not KernelEvidence(tmp_path)(NAME, "0" * 64)
    entry["sources"]["flashinfer"] = passed
    (tmp_path / "verification/x.json").write_text(json.dumps(record))
    assert KernelEvidence(tmp_path)(NAME, "0" * 64)


def test_a_comparison_that_failed_is_failed_and_one_not_made_is_an_error(tmp_path):
    found = sources(
        tmp_path,
        result("oracle", comparison(verdict="FAILED"), ending=FAILED),
        result("flashinfer", comparison("flashinfer")),
        result("flashinfer", ending=FAILED),
        result("sglang", ending=SKIPPED, skip_kind="needs-sm"),
        result("pytorch"),
    )
    assert {name: v.verdict for name, v in found.items()} == {
        "oracle": "FAILED",
        "flashinfer": "ERROR",
        "sglang": "SKIPPED",
        "pytorch": "ERROR",
    }
    assert found["flashinfer"].reason == "RuntimeError: no kernel image"
    assert found["sglang"].reason == "flashinfer: x needs SM100, device is SM90"
    assert found["sglang"].skip_kind == "needs-sm"
    assert found["pytorch"].reason == "passed without a comparison"


@pytest.mark.parametrize(
    ("kind", "reason", "other_gpu"),
    [
        ("needs-sm", "whatever it says", True),
        ("needs-gpus", "nccl needs 2 GPUs in one process, CUDA shows 1", True),
        ("not-installed", "x needs SM100", False),
        ("", "flashinfer: not installed", False),
    ],
)
def test_the_kind_of_a_skip_is_kept(tmp_path, kind, reason, other_gpu):
    ending = ("skipped", reason)
    found = runs(tmp_path, result("flashinfer/x", ending=ending, skip_kind=kind))
    folder = tmp_path / "verification"
    folder.mkdir()
    (folder / "run.json").write_text(as_text(found))
    (again,) = read_evidence(tmp_path, "verification/run.json")
    for run in (found[0], again):
        verdict = run.definitions[NAME].sources["flashinfer/x"]
        assert (verdict.skip_kind, verdict.reason) == (kind, reason)
        assert verdict.needs_other_gpu is other_gpu


def test_other_tests_that_failed_are_named(tmp_path):
    (run,) = runs(
        tmp_path,
        result(None, function="test_determinism", ending=FAILED),
        result(None, function="test_contract"),
    )
    assert run.definitions[NAME].failed == ("test_determinism",)


def test_what_is_written_is_read_back(tmp_path):
    written = runs(
        tmp_path,
        result("oracle", comparison(nmse=math.nan, p=0.5), sha256="ab"),
        result("sglang", ending=SKIPPED, sha256="ab"),
        result(None, function="test_determinism", ending=FAILED, definition="other"),
        machine=H200,
    )
    text = as_text(written)
    json.loads(text, parse_constant=lambda name: pytest.fail(name))
    (tmp_path / "e.json").write_text(text)
    read = read_evidence(tmp_path, "e.json")
    assert as_text(read) == text
    (run,) = read
    assert run.is_on_gpu
    assert math.isnan(run.definitions[NAME].sources["oracle"].nmse)
    assert run.definitions[NAME].sources["oracle"].figures == {"p": (0.5, 0.5)}


def test_new_verdicts_replace_old_ones_of_the_same_day_and_machine(tmp_path):
    old = runs(
        tmp_path,
        result("oracle", comparison(verdict="FAILED"), ending=FAILED),
        result("sglang", ending=SKIPPED, skip_kind="needs-sm"),
        result(definition="other", sha256="old"),
    )
    new = runs(
        tmp_path,
        result("oracle", comparison()),
        result(definition="other", sha256="new"),
    )
    (run,) = merge(old, new)
    verdicts = {n: v.verdict for n, v in run.definitions[NAME].sources.items()}
    assert verdicts == {"oracle": "PASSED", "sglang": "SKIPPED"}
    assert run.definitions["other"].sha256 == "new"
    other = runs(tmp_path, result("oracle", comparison()), machine=H200)
    assert len(merge([run], other)) == 2
    assert merge([run], [run]) == [run]


@pytest.mark.parametrize(
    ("machine", "date", "name"),
    [
        (H200, "2026-11-21", "2026-11-21_nvidia-h200.json"),
        (CPU, "2026-11-21", "2026-11-21_cpu.json"),
        ({"gpu": "../x/y"}, "2026-11-21", "2026-11-21_x-y.json"),
        ({}, "../../etc", "undated_unknown.json"),
        ({}, "", "undated_unknown.json"),
    ],
)
def test_a_file_is_named_by_day_and_machine_and_stays_in_its_folder(
    tmp_path, machine, date, name
):
    (run,) = runs(tmp_path, result(), machine=machine, date=date)
    assert run.file == f"verification/{name}"


RUN = {"date": "2026-11-21", "machine": {}, "definitions": {}}
ENTRY = {"sha256": "", "sources": {"oracle": {"verdict": "PASSED"}}}


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"format": 2, "runs": []},
        {"format": 1, "runs": {"a": 1}},
        {"format": 1, "runs": [{**RUN, "date": 7}]},
        {"format": 1, "runs": [{**RUN, "machine": {"gpu": 7}}]},
        {"format": 1, "runs": [{**RUN, "definitions": {"d": []}}]},
        {"format": 1, "runs": [{**RUN, "definitions": {"d": {**ENTRY, "sha256": 1}}}]},
        {
            "format": 1,
            "runs": [
                {
                    **RUN,
                    "definitions": {
                        "d": {"sha256": "", "sources": {"oracle": {"verdict": "OK"}}}
                    },
                }
            ],
        },
    ],
)
def test_what_is_no_evidence_is_one_line(tmp_path, value):
    (tmp_path / "e.json").write_text(json.dumps(value))
    with pytest.raises(Failure, match=r"^e\.json is no evidence of ") as caught:
        read_evidence(tmp_path, "e.json")
    assert "\n" not in str(caught.value)


def test_what_is_no_json_is_one_line(tmp_path):
    (tmp_path / "e.json").write_text("{")
    with pytest.raises(Failure, match=r"^e\.json is no evidence "):
        read_evidence(tmp_path, "e.json")


PASS = {"verdict": "PASSED", "cases": 1}


def test_one_broken_file_stops_those_who_own_it_and_nobody_else(tmp_path):
    write_evidence(tmp_path, "a.json", ("flashinfer", PASS))
    (tmp_path / "verification/b.json").write_text("{")
    write_evidence(tmp_path, "c.json", ("sglang", PASS))
    with pytest.raises(Failure, match=r"^verification/b\.json is no evidence "):
        kept_runs(tmp_path)
    told = []
    assert len(kept_runs(tmp_path, on_broken=told.append)) == 2
    assert [str(error).split()[0] for error in told] == ["verification/b.json"]
    assert len(runs_in(tmp_path)) == 2


def test_of_a_foreign_dataset_no_link_is_followed(tmp_path):
    write_evidence(tmp_path, "a.json", ("flashinfer", PASS))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "verification").symlink_to(tmp_path / "verification")
    assert runs_in(foreign) == []
    assert len(runs_in(tmp_path)) == 1


def test_what_the_audit_found_is_no_evidence_of_a_run(tmp_path):
    write_evidence(tmp_path, "a.json", ("flashinfer", PASS))
    (tmp_path / "verification/audit.json").write_text('{"format": 1}')
    assert evidence_files(tmp_path) == ["verification/a.json"]
    assert len(kept_runs(tmp_path)) == len(runs_in(tmp_path)) == 1
    assert is_evidence("verification/audit.json")
    assert not is_evidence("verification/audit.txt")
