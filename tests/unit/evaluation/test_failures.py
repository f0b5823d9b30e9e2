"""What a refusal tells its author, and what it keeps to itself in a contest."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from generator.evaluation import failures as module
from generator.evaluation.failures import (
    MOST,
    Failures,
    unwritten,
    without_details,
    without_expected,
)
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import rounds_of
from generator.evaluation.verdict import (
    INCORRECT_NUMERICAL,
    PASSED,
    RUNTIME_ERROR,
    CaseVerdict,
    Refused,
    SolutionVerdict,
)
from generator.problems import Failure
from generator.results.failure import read_failure
from generator.running.described import described
from kernel_judge.comparison.compare import compare
from kernel_judge.comparison.tolerance import Tolerance
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


def test_files_of_a_failure_hold_the_case_and_what_is_wrong(tmp_path: Path) -> None:
    failures = Failures(tmp_path / "mine", {"definition": NORM})
    found = judged(one_wrong, failures).items()
    refused = [
        case
        for name, case in found
        if case.verdict != PASSED and not name.startswith("metamorphic")
    ]
    folders = sorted((tmp_path / "mine").iterdir())
    assert len(folders) == min(len(refused), MOST)
    for folder in folders:
        tensors = load_file(folder / "failure.safetensors")
        inputs = (tensors["inputs.hidden_states"], tensors["inputs.weight"])
        actual, expected = tensors["actual.output"], tensors["expected.output"]
        assert torch.equal(one_wrong(*inputs), actual)
        assert float((actual.double() - expected).abs().argmax()) == 2 * 128 + 5
        failure = json.loads((folder / "failure.json").read_text())
        assert failure["definition"] == NORM
        assert failure["case"] in {case.case for case in refused}
        assert failure["axes"] == {"batch_size": len(actual)}
        (output,) = failure["outputs"]
        assert (output["wrong"], output["worst"][0]["index"]) == (1, [2, 5])
        by_axis = output["wrong_by_axis"]
        assert by_axis["batch_size"]["first"] == [2]
        assert by_axis["hidden_size"]["first"] == [5]
        hidden = json.dumps(without_expected(failure))
        worst = output["worst"][0]
        assert str(worst["expected"]) not in hidden
        assert str(worst["actual"]) in hidden
        assert "allowed" not in hidden


def test_of_later_cases_large_values_are_left_out(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES_LATER", 100)
    failures = Failures(tmp_path, {})
    inputs = {"x": torch.zeros(25), "y": torch.zeros(50)}
    for number in range(2):
        failures.keep(f"case {number}", inputs, Refused(RUNTIME_ERROR, "it raised"))
    first, later = sorted(tmp_path.iterdir())
    assert {*load_file(first / "failure.safetensors")} == {"inputs.x", "inputs.y"}
    assert {*load_file(later / "failure.safetensors")} == {"inputs.x"}
    assert "left_out" not in json.loads((first / "failure.json").read_text())
    said = json.loads((later / "failure.json").read_text())
    assert said["left_out"] == {"inputs.y": [50]}


def test_no_more_cases_are_kept_than_stated(tmp_path: Path) -> None:
    failures = Failures(tmp_path, {})
    refused = Refused(RUNTIME_ERROR, "it raised")
    value = torch.ones(2)
    for number in range(MOST + 2):
        for _ in range(2):
            failures.keep(f"../{number}", {"x": value, "s": math.inf}, refused)
    folders = list(tmp_path.iterdir())
    assert len(folders) == MOST
    for folder in folders:
        failure = json.loads((folder / "failure.json").read_text())
        assert failure["numbers"] == {"inputs.s": "inf"}
        assert failure["verdict"] == RUNTIME_ERROR


WRONG = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])


@pytest.mark.parametrize(
    ("change", "likely"),
    [
        (lambda x: x * math.log(2.0), "logarithm"),
        (lambda x: -x, "sign"),
        (lambda x: x * 3.0, "a scale is missing"),
        (lambda x: x + torch.tensor([0.0, 0.0, 9.0]), "columns from 2 on: the tail"),
        (lambda x: x * torch.tensor([[1.0], [1.0], [0.0]]), "rows from 2 on: the tail"),
        (lambda x: x + torch.tensor([[9.0], [0.0], [9.0]]), "every 2. index of rows"),
        (lambda x: x * math.nan, "NaN"),
        (lambda x: x * math.inf, "largest number"),
        (lambda x: x * 0.0, "zeros"),
        (lambda x: x * (1.0 + torch.tensor([3e-3, -3e-3, 2e-3])), "narrower dtype"),
        (lambda x: x + torch.tensor([[1.0, -7, 2], [3, 1, -4], [-2, 5, 2]]), ""),
    ],
)
def test_likely_causes_are_recognised(change, likely: str) -> None:
    actual = change(WRONG)
    found = compare(actual, WRONG, Tolerance(1e-4, 1e-5))
    about = described("y", ("rows", "columns"), actual, WRONG, found)
    assert likely in about["likely"]
    assert bool(likely) == bool(about["likely"])


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"kind": "page"},
        {"seed": "1"},
        {"seed": -1},
        {"fuzz": True},
        {"device": "tpu"},
        {"workloads": ["both"]},
        {"solution": []},
        {"case": None},
    ],
)
def test_another_file_is_no_failure(tmp_path: Path, change) -> None:
    value = {"format": 1, "kind": "solution", "seed": 1, "fuzz": 0, "device": "cpu"}
    value |= {"solution": {}, "case": "c", "verdict": "v", "path": "p"}
    value["workloads"] = "both"
    value["definition"] = "d"
    path = tmp_path / "failure.json"
    path.write_text(json.dumps(value))
    assert read_failure(path) == value
    path.write_text(json.dumps({**value, **change}))
    with pytest.raises(Failure):
        read_failure(path)


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


@pytest.mark.parametrize(("case", "is_told"), [("lengths 3: M 37", 0), ("small", 1)])
def test_contest_tells_no_memory_of_a_drawn_case(case: str, is_told: int) -> None:
    memory = {"case": case, "peak_memory_bytes": 37 << 20}
    about = ("mine", "me", NORM, "rmsnorm", "mine.json", PASSED)
    found = without_details(SolutionVerdict(*about, memory=memory))
    assert found.memory == (memory if is_told else {})


def test_values_that_are_a_little_wrong_are_not_in_other_places() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(64, 128, generator=generator)
    norm = torch.rsqrt(x.square().mean(-1, keepdim=True))
    expected = x * norm
    wrong = {
        "": x * torch.rsqrt(x.var(-1, keepdim=True)),
        "other places": expected.roll(1, 1),
    }
    for word, actual in wrong.items():
        comparison = compare(actual, expected, Tolerance(1e-3, 1e-4))
        likely = described("y", None, actual, expected, comparison)["likely"]
        assert ("other places" in likely) == bool(word)


LARGE = torch.randn(3_000, 4, 128, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    ("change", "likely"),
    [
        (lambda x: x.index_fill(0, torch.tensor([1_234]), 9.0), "rows 1234 alone"),
        (lambda x: x.index_fill(0, torch.arange(2_000, 3_000), 0.0), "rows from 2000"),
        (lambda x: x * torch.linspace(1.5, 2.5, 3_000)[:, None, None], "for each rows"),
        (lambda x: x.roll(1, 2), "other places"),
    ],
)
def test_a_large_output_is_described_whole_and_its_cause_is_that_of_a_part(
    change, likely: str
) -> None:
    actual, bound = change(LARGE).bfloat16(), Tolerance(1e-2, 1e-3, of_row=1e-2)
    comparison = compare(actual, LARGE, bound)
    about = described("y", ("rows", "heads", "columns"), actual, LARGE, comparison)
    assert likely in about["likely"]
    far = (actual.double() - LARGE.double()).abs() > bound.allowed(LARGE.double())
    assert about["wrong"] == int(far.sum()) > 0
    by_row = about["wrong_by_axis"]["rows"]
    assert by_row["wrong"] == int(far.any(dim=(1, 2)).sum())
    assert 0 < about["likely_of"] <= 1 << 18
