"""`trace-dataset traces` as a black box: what it prints, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.functional.test_validate import DEFINITION, FILE, WORKLOAD, run

pytest.importorskip("duckdb")

NAME = DEFINITION["name"]


def trace(solution: str, latency: float, **changes: Any) -> str:
    speed = {
        "latency_ms": latency,
        "reference_latency_ms": 1.0,
        "speedup_factor": 1.0 / latency,
    }
    evaluation = {
        "status": "PASSED",
        "environment": {"hardware": "NVIDIA H200"},
        "timestamp": "2026-11-20T10:00:00",
        "correctness": {"max_relative_error": 0.0, "max_absolute_error": 0.0},
        "performance": speed,
        **changes,
    }
    value = {**WORKLOAD, "solution": solution, "evaluation": evaluation}
    return f"{json.dumps(value)}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a dataset in which bob's solution is faster than alice's."""
    files = {
        FILE: json.dumps(DEFINITION),
        f"workloads/gemm/{NAME}.jsonl": json.dumps(WORKLOAD),
        f"traces/alice/gemm/{NAME}.jsonl": trace("plain", 0.5),
        f"traces/bob/gemm/{NAME}.jsonl": trace("tiled", 0.25),
        f"solutions/alice/gemm/{NAME}/plain.json": "{}",
        f"solutions/bob/gemm/{NAME}/tiled.json": "{}",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def traces(root: Path, *arguments: str) -> Any:
    return run("traces", "--dataset", str(root), *arguments)


def test_the_best_solution_and_the_winner_are_printed(root: Path) -> None:
    done = traces(root)
    assert done.returncode == 0
    assert "tiled" in done.stdout
    assert "plain" not in done.stdout
    assert "1 / 1 (100 %)" in done.stdout
    assert done.stderr == (
        "2 traces: 0 stale, 0 contradicted, 0 unreadable; 1 best solution\n"
    )


def test_json_has_all_solutions(root: Path) -> None:
    found = json.loads(traces(root, "--json", "--op-type", "gemm").stdout)
    speeds = {row["solution"]: row["speedup"] for row in found["solutions"]}
    assert speeds == {"plain": pytest.approx(2.0), "tiled": pytest.approx(4.0)}
    assert [row["author"] for row in found["authors"]] == ["bob", "alice"]


def test_traces_that_can_t_be_believed_make_the_status_1(root: Path) -> None:
    with (root / f"traces/bob/gemm/{NAME}.jsonl").open("a") as file:
        file.write(trace("tiled", 0.25, status="INCORRECT_NUMERICAL"))
        file.write(trace("gone", 0.1))
        file.write("{")
    done = traces(root)
    assert done.returncode == 1
    assert "5 traces: 1 stale, 2 contradicted, 1 unreadable" in done.stderr
    assert "the dataset has no such solution" in done.stdout
    assert "Lines that are no traces" in done.stdout
    assert "1 line: trace-dataset validate says why" in done.stdout
    assert "say PASSED and INCORRECT_NUMERICAL" in done.stdout
    assert "plain" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--dataset", "nowhere"],
            f"There is no folder {str(Path('nowhere').absolute())!r}.",
        ),
        (
            ["--op-type", "gem"],
            "No op_type of the dataset is named 'gem'. Did you mean 'gemm'?",
        ),
    ],
    ids=["dataset", "op_type"],
)
def test_wrong_use_is_one_line(root: Path, arguments: list[str], said: str) -> None:
    done = traces(root, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"Error: {said}")
    assert len(done.stderr.splitlines()) == 1


def test_no_traces_is_one_line(root: Path) -> None:
    for path in root.glob("traces/*/gemm/*.jsonl"):
        path.unlink()
    done = traces(root)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Error: There are no traces in ")
    assert len(done.stderr.splitlines()) == 1
