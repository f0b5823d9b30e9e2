"""What a refusal tells its author, and what it keeps to itself in a contest."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from generator.evaluation.failures import MOST, Failures, unwritten, without_details
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    PASSED,
    CaseVerdict,
    SolutionVerdict,
)
from tests.builders import CPU, loaded, run_of
from tools.evaluate_mutants import InProcess

NORM = "rmsnorm_h128"


def judged(run, failures=None):
    asked = rounds_of(loaded(NORM), [], Path(), CPU, 3)
    found = Judge(InProcess(run), asked, CPU, False, 3, failures).judge()
    return {case.case: case for case in found}


def one_wrong(*given):
    out = run_of(loaded(NORM).reference)(*given).clone()
    if len(out) > 2:
        out[2, 5] += 3.0
    return out


def test_a_refusal_has_element_values_bound_its_source_and_lengths() -> None:
    refused = [
        case
        for name, case in judged(one_wrong).items()
        if case.verdict != PASSED and not name.startswith("metamorphic")
    ]
    assert len(refused) > 10
    for case in refused:
        assert case.verdict == INCORRECT_NUMERICAL
        for part in (
            "the worst at (2, 5): actual ",
            ", expected ",
            ", difference ",
            "·|expected| = ",
            "bounds: flashinfer's",
            "(batch_size ",
        ):
            assert part in case.reason
        assert "e+30" not in case.reason


def test_files_of_a_failure_hold_the_case_and_a_command(tmp_path: Path) -> None:
    failures = Failures(tmp_path / "mine", ["trace-dataset", "evaluate", "a b.json"])
    found = judged(one_wrong, failures).items()
    refused = [
        case
        for name, case in found
        if case.verdict != PASSED and not name.startswith("metamorphic")
    ]
    folders = sorted((tmp_path / "mine").iterdir())
    assert len(folders) == min(len(refused), MOST)
    for folder in folders:
        inputs = load_file(folder / "inputs.safetensors")
        actual = load_file(folder / "actual.safetensors")["output"]
        expected = load_file(folder / "expected.safetensors")["output"]
        assert torch.equal(one_wrong(*inputs.values()), actual)
        assert float((actual.double() - expected).abs().argmax()) == 2 * 128 + 5
        words = shlex.split((folder / "run-again.sh").read_text())
        assert words[:3] == ["trace-dataset", "evaluate", "a b.json"]
        assert words[-2] == "--case"
        assert words[-1] in {case.case for case in refused}


def test_no_more_cases_are_kept_than_stated(tmp_path: Path) -> None:
    failures = Failures(tmp_path, ["x"])
    value = torch.ones(2)
    for number in range(MOST + 2):
        for _ in range(2):
            failures.keep(
                f"../{number}", {"x": value, "s": 2.0}, ["y"], [value], [value]
            )
    folders = list(tmp_path.iterdir())
    assert len(folders) == MOST
    assert all(
        (folder / "inputs.json").read_text() == '{"s": 2.0}' for folder in folders
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_poison_that_was_never_written_is_told_from_other_nan(dtype) -> None:
    value = torch.ones(6, dtype=dtype)
    assert unwritten([value, 3, None, torch.ones(2, dtype=torch.int64)]) == ""
    value[:2] = torch.nan
    assert unwritten([value]).startswith("2 of 6 elements have the NaN")
    # a division makes NaN of other bits
    value[:2] = (torch.zeros(2) / torch.zeros(2)).to(dtype)
    assert unwritten([value]) == ""


def test_a_contest_says_the_verdict_alone() -> None:
    cases = [
        CaseVerdict("one-row", PASSED, "", {"max_abs": 0.1}),
        CaseVerdict("lengths 3: M 37", INCORRECT_NUMERICAL, "0.5 at 3", {"nmse": 1.0}),
    ]
    about = (
        "s",
        "a",
        "d",
        "o",
        "p",
        INCORRECT_NUMERICAL,
        "0.5 at 3",
        "lengths 3: M 37",
    )
    found = without_details(SolutionVerdict(*about, cases, ["a note"]))
    text = str(found.as_dict())
    for hidden in ("37", "0.5", "nmse", "a note"):
        assert hidden not in text
    assert found.verdict == INCORRECT_NUMERICAL
    assert [case.verdict for case in found.cases] == [PASSED, INCORRECT_NUMERICAL]
