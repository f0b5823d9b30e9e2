"""`validate --execute` at the workloads of a dataset: what a reference does there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.dataset.definition import LoadedDefinition
from generator.rules.load import load_definitions
from generator.validation.execute import run as execution
from tests.functional.hostile import write
from tests.functional.test_validate import DEFINITION, WORKLOAD


@pytest.fixture(autouse=True, scope="module")
def _can_isolate() -> None:
    reason = execution.why_not()
    if reason is not None:
        pytest.skip(reason)


ROWS = "def run(A, B):\n    C = A @ B.T\n    {}\n    return C\n"
MANY = (3 << 20) + 7
AT_WORKLOADS = {
    # planted, with what is said at 1, 128 and 300 rows, and of MANY
    "C[100:] = 0": ["At workload 2 (M 128): mismatched elements: ", " So is 1 other"],
    "C[200:] = 0": ["At workload 3 (M 300): mismatched elements: "],
    "C = C[:200]": ["At workload 3 (M 300): C is (200, 8), declared (300, 8)."],
    "A[0].nothing if len(A) > 200 else 0": ["(M 300): it raised AttributeError: "],
    f"C[{MANY - 2} :] = 0": [],
}


def _with_workloads(root: Path) -> tuple[LoadedDefinition, ...]:
    for number, planted in enumerate(AT_WORKLOADS):
        name = f"gemm_n8_k4_{number}"
        value = {**DEFINITION, "name": name, "reference": ROWS.format(planted)}
        write(root, f"definitions/gemm/{name}.json", value)
        lines = []
        for uuid, rows in enumerate((1, 128, 300, MANY), 1):
            inputs = WORKLOAD["workload"]["inputs"]
            told = {"uuid": str(uuid), "axes": {"M": rows}, "inputs": inputs}
            lines.append(json.dumps({"definition": name, "workload": told}))
        write(root, f"workloads/gemm/{name}.jsonl", "\n".join(lines))
    return load_definitions(root).definitions


def test_a_reference_meets_the_workloads_that_fit(tmp_path: Path) -> None:
    definitions = _with_workloads(tmp_path)
    problems = execution.check(definitions, dataset=tmp_path, workloads="fit")
    for definition, parts in zip(definitions, AT_WORKLOADS.values(), strict=True):
        said = [p for p in problems if p.file == definition.path]
        wrong = [p.message for p in said if p.rule == "execute-workload"]
        left = [p.message for p in said if p.rule == "execute-not-run"]
        assert len(wrong) == bool(parts)
        assert all(part in wrong[0] for part in parts), wrong
        assert left == ["1 of 4 workloads were not compared (1: 72 MiB are for a GPU)."]


def test_all_asks_for_what_does_not_fit_and_none_for_nothing(tmp_path: Path) -> None:
    last = [_with_workloads(tmp_path)[-1]]
    (problem,) = execution.check(last, dataset=tmp_path, workloads="all")
    assert problem.rule == "execute-workload"
    assert f"(M {MANY})" in problem.message
    assert execution.check(last, dataset=tmp_path, workloads="none") == []
