"""What a run writes of its tests: one line for each, when its last report arrives."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from generator.running.evidence import FinishedTests, ResultsFile
from tests.builders import CPU
from tests.unit.running.reports import finished, report

FAR = SimpleNamespace(reprcrash=SimpleNamespace(message="\nAssertionError: far off\n1"))


def test_a_test_is_finished_when_its_teardown_is():
    tests = FinishedTests()
    record = {"source": "oracle", "nmse": float("inf")}
    about = {"source": "oracle", "sha256": "ab", "unknown": 1}
    phases = [
        report("test_matches_oracle", *compared, when=when, **about)
        for when, compared in (
            ("setup", ()),
            ("call", [record]),
            ("teardown", [record]),
        )
    ]
    assert [tests.add(phase) for phase in phases[:2]] == [None, None]
    assert tests.add(phases[2]) == {
        "test": "TestD::test_matches_oracle[case]",
        "definition": "d",
        "op_type": "rmsnorm",
        "sha256": "ab",
        "source": "oracle",
        "status": "passed",
        "message": "",
        "seconds": 1.5,
        "skip_kind": "",
        "comparisons": [record],
    }


def with_text(found, longrepr):
    found.longrepr = longrepr
    return found


@pytest.mark.parametrize(
    ("found", "status", "message"),
    [
        (
            with_text(report("t", outcome="failed"), FAR),
            "failed",
            "AssertionError: far off",
        ),
        (
            with_text(report("t", outcome="failed", when="setup"), "a\nb"),
            "error",
            "a",
        ),
        (report("t", outcome="failed", when="teardown"), "error", "None"),
        (report("t", outcome="skipped", reason="no GPU"), "skipped", "no GPU"),
    ],
)
def test_an_ending_has_a_status_and_the_first_line_that_says_why(
    found, status, message
):
    test = finished(found)
    assert (test["status"], test["message"]) == (status, message)


def test_the_first_failure_counts_and_a_failure_before_a_skip():
    tests = FinishedTests()
    tests.add(with_text(report("t", outcome="failed"), FAR))
    test = tests.add(report("t", outcome="failed", when="teardown"))
    assert (test["status"], test["message"]) == ("failed", "AssertionError: far off")
    tests.add(report("t", outcome="skipped", reason="no GPU"))
    test = tests.add(with_text(report("t", outcome="failed", when="teardown"), "late"))
    assert (test["status"], test["message"]) == ("error", "late")


def test_a_worker_that_crashed_leaves_an_error_of_its_test():
    tests = FinishedTests()
    tests.add(report("t", when="setup", source="oracle"))
    # as xdist reports it
    crash = with_text(report("t", outcome="failed", when="???"), "worker 'gw0' crashed")
    crash.user_properties = []
    test = tests.add(crash)
    assert (test["definition"], test["source"]) == ("d", "oracle")
    assert (test["status"], test["message"]) == ("error", "worker 'gw0' crashed")


def test_a_test_that_is_no_reference_test_is_left_out():
    foreign = report("test_something")
    foreign.user_properties = []
    assert finished(foreign) is None


def test_lines_are_there_as_soon_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.jsonl").write_text("of an older run\n")
    results = ResultsFile(tmp_path.__class__("r.jsonl"), CPU)
    monkeypatch.chdir("/")
    results.write({"nmse": float("nan"), "name": "\u2028\ud800"})
    head, line = (tmp_path / "r.jsonl").read_text().splitlines()
    assert json.loads(head).keys() == {"format", "date", "machine"}
    assert json.loads(line)["name"] == "\u2028\ud800"


def test_a_file_that_can_t_be_written_is_one_line(tmp_path):
    with pytest.raises(pytest.UsageError, match=r"--results .*: No such file"):
        ResultsFile(tmp_path / "missing/r.jsonl", CPU)
