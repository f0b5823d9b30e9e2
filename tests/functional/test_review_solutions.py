"""`review --execute` judges the solutions of a change, and its traces by that run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from generator.evaluation.verdict import (
    PASSED,
    SKIPPED,
    CaseVerdict,
    SolutionVerdict,
)
from generator.review import shown
from generator.review.decision import Decision
from generator.review.review import (
    SOLUTIONS_RUN,
    Review,
    ReviewRequest,
    make_review,
    with_solutions,
)
from generator.review.revisions import open_sources
from generator.review.solutions import NO_TIMES, TraceClaim, evaluate_change
from tests.functional.hostile import write
from tests.functional.reviewed import REFERENCE, changed, commit, make
from tests.functional.test_validate import WORKLOAD

NAME = "gemm_n8_k4"
RIGHT = "def run(A, B):\n    return A @ B.T\n"
WRONG = "def run(A, B):\n    return (A @ B.T) * 1.1\n"
UUID = WORKLOAD["workload"]["uuid"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    from generator.review.execute import why_not

    if reason := why_not():
        pytest.skip(reason)
    make(tmp_path)
    return tmp_path


def add(root: Path, name: str, source: str, author: str = "tester") -> None:
    value = {
        "name": name,
        "definition": NAME,
        "author": author,
        "spec": {
            "language": "python",
            "target_hardware": ["cpu"],
            "entry_point": "main.py::run",
            "destination_passing_style": False,
        },
        "sources": [{"path": "main.py", "content": source}],
    }
    write(root, f"solutions/{author}/gemm/{NAME}/{name}.json", value)


def trace(root: Path, *claims: tuple[str, str]) -> None:
    lines = [
        {
            "definition": NAME,
            "solution": name,
            "workload": WORKLOAD["workload"],
            "evaluation": {
                "status": status,
                "environment": {"hardware": "a GPU", "libs": {}},
                "timestamp": "2026-11-23T00:00:00+00:00",
                "log": "",
                "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0},
                "performance": {
                    "latency_ms": 1.0,
                    "reference_latency_ms": 2.0,
                    "speedup_factor": 2.0,
                },
            },
        }
        for name, status in claims
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    write(root, f"traces/tester/gemm/{NAME}.jsonl", text)


def judged(root: Path) -> Review:
    """Return a review with the verdicts on solutions; no reference test is run."""
    with open_sources(root, None, None) as sources:
        made = make_review(sources, 1)
        found = evaluate_change(made.changes, sources, "cpu", 1)
        return made if found is None else with_solutions(made, found)


def verdicts(made: Review) -> dict[str, str]:
    assert made.evaluated is not None
    return {v.solution: v.verdict for v in made.evaluated.verdicts}


def asked_by_run(made: Review) -> list[Decision]:
    """Return what the run of solutions asks for; the dataset lacks a GPU's word anyway."""
    return [r.decision for r in made.grounds if r.point == SOLUTIONS_RUN]


def test_solutions_and_claims_are_judged(root: Path) -> None:
    add(root, "right", RIGHT)
    add(root, "wrong", WRONG)
    trace(root, ("right", "PASSED"), ("wrong", "PASSED"), ("gone", "PASSED"))
    made = judged(root)
    assert made.decision is Decision.CHANGES
    assert verdicts(made) == {"right": "PASSED", "wrong": "INCORRECT_NUMERICAL"}
    assert made.evaluated is not None
    assert {c.solution: c.found for c in made.evaluated.claims} == {
        "right": NO_TIMES,
        "wrong": "INCORRECT_NUMERICAL",
        "gone": "SKIPPED",
    }
    said = " ".join(made.reasons)
    assert "wrong claims PASSED, is INCORRECT_NUMERICAL in case" in said
    assert "right claims PASSED, is RIGHT, TIMES UNKNOWN (of a GPU" in said
    page = "".join(shown(made, "html"))
    assert "wrong.json" in page
    assert "claims PASSED for wrong" in page
    for label, count in (("wrong solutions", 1), ("false claims", 1)):
        assert f"<dt>{label}</dt><dd>{count}</dd>" in page
    # the reason stands once
    assert page.count('<span class="seen">as above</span>') == 1
    listed = json.loads("".join(shown(made, "json")))["evaluated"]
    assert [v["solution"] for v in listed["solutions"]] == ["right", "wrong"]


def test_no_reference_of_the_change_runs_for_its_solutions(root: Path) -> None:
    mark = root / "mark"
    changed(root, reference=f"open({str(mark)!r}, 'w')\n{REFERENCE}")
    add(root, "right", RIGHT)
    # by the oracle alone
    assert verdicts(judged(root)) == {"right": "PASSED"}
    assert not mark.exists()


def test_change_without_solutions_evaluates_nothing(root: Path) -> None:
    changed(root, description="Another text.")
    assert judged(root).evaluated is None


@pytest.mark.parametrize(
    ("status", "found", "is_false"),
    [
        (PASSED, "INCORRECT_NUMERICAL", True),
        (PASSED, SKIPPED, False),
        (PASSED, PASSED, False),
        (PASSED, NO_TIMES, False),
        ("RUNTIME_ERROR", PASSED, False),
    ],
)
def test_only_a_pass_is_a_false_claim(status: str, found: str, is_false: bool) -> None:
    claim = TraceClaim("traces/a/gemm/b.jsonl", 1, "mine", UUID, status, found)
    assert claim.is_false is is_false
    assert claim.is_contrary is (status != PASSED)


@pytest.mark.parametrize(
    ("claimed", "trusts", "wanted"),
    [
        (PASSED, False, [Decision.GPU]),
        (PASSED, True, []),
        ("RUNTIME_ERROR", True, [Decision.PERSON]),
    ],
)
def test_times_that_nobody_measured_and_failures_that_nobody_saw(
    root: Path, claimed: str, trusts: bool, wanted: list[Decision]
) -> None:
    """A right solution on a CPU shows neither that a time is true nor that it failed."""
    add(root, "right", RIGHT)
    trace(root, ("right", claimed))
    with open_sources(root, None, None) as sources:
        made = make_review(sources, 1, ReviewRequest(trust_evidence=trusts))
        found = evaluate_change(made.changes, sources, "cpu", 1)
    assert found is not None
    made = with_solutions(made, found)
    assert asked_by_run(made) == wanted


def _measured(latency: float, spread: float) -> SolutionVerdict:
    """Return what a judge on a GPU says: its clock is made up here."""
    timing = {
        "latency_ms": latency,
        "reference_latency_ms": 2 * latency,
        "speedup_factor": 2.0,
        "spread_ms": spread,
    }
    workload: Any = WORKLOAD["workload"]
    case = CaseVerdict("workload", PASSED, workload=workload, timing=timing)
    path = f"solutions/tester/gemm/{NAME}/right.json"
    return SolutionVerdict("right", "tester", NAME, "gemm", path, PASSED, cases=[case])


@pytest.mark.parametrize(
    ("latency", "spread", "hardware", "is_false"),
    [
        (1.0, 0.01, "a GPU", False),
        (1.04, 0.001, "a GPU", False),
        (1.3, 0.2, "a GPU", False),
        (1.3, 0.01, "a GPU", True),
        # of another GPU a run says nothing
        (1.3, 0.01, "another GPU", False),
    ],
)
def test_with_a_gpu_claimed_times_are_measured_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    latency: float,
    spread: float,
    hardware: str,
    is_false: bool,
) -> None:
    make(tmp_path)
    add(tmp_path, "right", RIGHT)
    trace(tmp_path, ("right", PASSED))
    asked = []

    def evaluate(solutions: Sequence[Any], *arguments: Any) -> list[SolutionVerdict]:
        asked.append((len(solutions), arguments[2].device, arguments[2].timing))
        return [_measured(latency, spread) for _ in solutions]

    monkeypatch.setattr("generator.evaluation.evaluate.evaluate", evaluate)
    told = {"hardware": hardware, "libs": {}}
    monkeypatch.setattr("generator.evaluation.environment.environment", lambda _: told)
    with open_sources(tmp_path, None, None) as sources:
        made = make_review(sources, 1)
        found = evaluate_change(made.changes, sources, "cuda", 1)
    assert found is not None
    assert asked == [(1, "cuda", True), (0, "cuda", True)]
    made = with_solutions(made, found)
    (claim,) = found.claims
    assert claim.is_false == is_false
    assert (made.decision is Decision.CHANGES) == is_false
    # nothing is left where it was measured on the hardware that it names, and clearly
    is_open = hardware == "another GPU" or spread > 0.1
    asked_for = Decision.CHANGES if is_false else Decision.GPU
    assert asked_by_run(made) == ([asked_for] if is_false or is_open else [])
    assert ("it claims 1.0000 ms" in str(claim)) == is_false


def test_each_line_is_held_against_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A false line is none the better for a later true one of the same workload."""
    make(tmp_path)
    add(tmp_path, "right", RIGHT)
    trace(tmp_path, ("right", PASSED))
    path = tmp_path / f"traces/tester/gemm/{NAME}.jsonl"
    true = json.loads(path.read_text())
    evaluation = true["evaluation"]
    false = {**true, "evaluation": {**evaluation, "timestamp": "2020-01-01T00:00:00Z"}}
    false["evaluation"]["performance"] = {
        **evaluation["performance"],
        "latency_ms": 0.5,
    }
    path.write_text(f"{json.dumps(false)}\n{json.dumps(true)}\n")

    def evaluate(solutions: Sequence[Any], *arguments: Any) -> list[SolutionVerdict]:
        return [_measured(1.0, 0.01) for _ in solutions]

    monkeypatch.setattr("generator.evaluation.evaluate.evaluate", evaluate)
    told = {"hardware": "a GPU", "libs": {}}
    monkeypatch.setattr("generator.evaluation.environment.environment", lambda _: told)
    with open_sources(tmp_path, None, None) as sources:
        changes = make_review(sources, 1).changes
        found = evaluate_change(changes, sources, "cuda", 1)
    assert found is not None
    assert [(c.line, c.is_false) for c in found.claims] == [(1, True), (2, False)]


def test_what_was_measured_of_a_solution_is_a_claim_on_what_replaces_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    add(tmp_path, "right", RIGHT)
    trace(tmp_path, ("right", PASSED))
    commit(tmp_path)
    add(tmp_path, "right", f"# slower\n{RIGHT}")

    def evaluate(solutions: Sequence[Any], *arguments: Any) -> list[SolutionVerdict]:
        return [_measured(2.0, 0.01) for _ in solutions]

    monkeypatch.setattr("generator.evaluation.evaluate.evaluate", evaluate)
    told = {"hardware": "a GPU", "libs": {}}
    monkeypatch.setattr("generator.evaluation.environment.environment", lambda _: told)
    with open_sources(tmp_path, None, None) as sources:
        made = make_review(sources, 1)
        found = evaluate_change(made.changes, sources, "cuda", 1)
    assert found is not None
    assert [claim.is_false for claim in found.claims] == [True]


def test_a_solution_for_a_gpu_is_not_approved_by_a_run_on_a_cpu(root: Path) -> None:
    add(root, "right", RIGHT)
    path = f"solutions/tester/gemm/{NAME}/right.json"
    assert asked_by_run(judged(root)) == []
    value = json.loads((root / path).read_text())
    value["spec"]["target_hardware"] = ["cpu", "NVIDIA_H100"]
    write(root, path, value)
    made = judged(root)
    assert verdicts(made) == {"right": "PASSED"}
    assert asked_by_run(made) == [Decision.GPU]
    assert "right on this cpu, made for others" in " ".join(made.reasons)
