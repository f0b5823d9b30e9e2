"""`trace-dataset review --execute` of a change that brings other software."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from generator.execution.processes import run_python, safe_environment
from generator.results import run_results
from generator.review.crossed import Crossed, SoftwareRun, _compared
from generator.review.decision import Decision
from tests.builders import ROOT
from tests.forking import run_module
from tests.functional.reviewed import (
    REFERENCE,
    answers,
    changed,
    commit,
    make,
    reviewed,
)

CHANGES, PERSON = 1, 3


def _result(test: str, definition: str, status: str) -> run_results.TestResult:
    return run_results.TestResult(test, definition, "", None, status, "", 0.0, ())


def _runs(
    base: dict[str, str], head: dict[str, str]
) -> tuple[SoftwareRun, SoftwareRun]:
    """Return both runs of tests, `definition::test` → status; `old` is unchanged."""
    results = [
        [_result(test, test.partition("::")[0], status) for test, status in of.items()]
        for of in (base, head)
    ]
    empty = (SoftwareRun("base", "head"), SoftwareRun("head", "base"))
    return _compared(empty[0], results[0], empty[1], results[1], {"old"})


def test_what_fails_by_the_change_is_told_from_what_failed_before() -> None:
    on_head, on_base = _runs(
        {
            "new::a": "failed",
            "old::a": "failed",
            "old::b": "passed",
            "old::c": "passed",
        },
        {"old::a": "failed", "old::b": "failed", "old::c": "passed"},
    )
    assert (on_head.failed, on_head.known) == (("new::a",), ("old::a",))
    assert (on_base.failed, on_base.known) == (("old::b",), ("old::a",))
    assert on_base.lost == ()
    grounds = list(Crossed((on_head, on_base)).reasons)
    assert [reason.decision for reason in grounds] == [Decision.CHANGES] * 2


@pytest.mark.parametrize("after", [{}, {"old::a": "skipped"}])
def test_a_test_that_is_no_longer_asked_is_named(after: dict[str, str]) -> None:
    on_head, on_base = _runs({"old::a": "passed", "new::a": "passed"}, after)
    assert on_base.lost == ("old::a",)
    crossed = Crossed((on_head, on_base), ("another",))
    (reason,) = crossed.reasons
    assert reason.decision is Decision.PERSON
    assert "no longer ask old::a" in str(reason)
    assert "not run, of 1 definition: another" in list(crossed.lines)[-1]


@pytest.fixture
def software(tmp_path: Path) -> Path:
    """Return a repository with a small dataset and this software."""
    for folder in ("generator", "kernel_judge", "templates"):
        away = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=away)
    make(tmp_path)
    return tmp_path


@pytest.fixture
def root(software: Path) -> Path:
    """Return the same, where references can be run."""
    from generator.review.execute import why_not

    if reason := why_not():
        pytest.skip(reason)
    return software


def _loosen(root: Path, old: str, new: str) -> None:
    file = root / "generator/ops/op_types/gemm/op.py"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.slow
def test_a_loosened_test_does_not_hide_what_it_was_loosened_for(root: Path) -> None:
    changed(root, reference=REFERENCE.replace("A @ B.T", "(A @ B.T) * 1.5"))
    _loosen(root, "def oracle(", "def oracle_before(")
    found = reviewed(root, "--execute", status=CHANGES)
    on_head, on_base = found["software_runs"]["runs"]
    assert "gemm_n8_k4" in on_head["definitions"]
    assert any("N8" in test and "oracle" in test for test in on_head["failed"])
    assert on_base["failed"] or on_base["problems"] or on_base["lost"]
    assert found["software_runs"]["not_run"] == []


@pytest.mark.slow
def test_a_case_that_is_gone_is_named_and_other_changes_need_a_person(
    root: Path,
) -> None:
    file = root / "generator/ops/op_types/gemm/op.py"
    file.write_text(file.read_text() + "\n\n# the same\n")
    found = reviewed(root, "--execute", status=PERSON)
    on_head, on_base = found["software_runs"]["runs"]
    assert on_head["passed"] == on_base["passed"] > 0
    assert on_base["lost"] == on_base["failed"] == on_head["problems"] == []
    commit(root)
    lines = file.read_text().splitlines(keepends=True)
    case = next(line for line in lines if 'Case("' in line and '"small"' in line)
    file.write_text("".join(line for line in lines if line != case))
    found = reviewed(root, "--base", "HEAD", "--execute", status=PERSON)
    assert found["software_runs"]["runs"][1]["lost"]
    assert any("no longer ask" in reason for reason in found["reasons"])


def _render(root: Path) -> None:
    """Render tests with the software that the repository holds."""
    code = "from generator.cli.gen_tests import main; main()"
    done = run_python(
        ["-c", code, "--all", f"--dataset={root}"],
        environment=safe_environment(paths=[str(root)]),
        timeout=100,
    )
    assert done.returncode == 0, done.stderr


def test_tests_are_rendered_by_the_software_that_the_base_holds(
    software: Path,
) -> None:
    file = software / "templates/test_file.py.jinja"
    first, _, rest = file.read_text().partition("\n")
    assert "import" not in first
    file.write_text(f"{first}\n# of another version\n{rest}")
    _render(software)
    (test,) = (software / "tests/references").glob("test_*.py")
    assert "# of another version" in test.read_text()
    commit(software)
    changed(software, description="In other words.")
    _render(software)
    found = reviewed(software, status=PERSON)
    assert "review-rendered" not in str(found["problems"]["new"])
    assert answers(found)["reference test rendered from this text"] == "yes"
    # what this version renders is not what the base's does
    arguments = ("--all", "--dataset", str(software), "--force")
    done = run_module("generator.cli.gen_tests", *arguments)
    assert done.returncode == 0
    found = reviewed(software, status=CHANGES)
    assert "review-rendered" in str(found["problems"]["new"])
