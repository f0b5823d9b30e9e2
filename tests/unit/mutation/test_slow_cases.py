"""Mutants that are the reference in quick cases share the calls of slow ones."""

from __future__ import annotations

import ast
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.paths import DatasetFile
from generator.execution.outcome import CannotRun
from generator.mutation import mutant_workers, task_functions
from generator.mutation.audit_job import (
    NO_OTHER_VALUE,
    PENDING,
    AuditJob,
    prepare,
)
from generator.mutation.generic.code import Edit, SourceCode
from generator.mutation.mutant_workers import run_all
from generator.mutation.mutants_result import MutantResult
from generator.mutation.prepared_case import PreparedCase
from generator.mutation.watch import Watch
from generator.results.audits import CAUGHT, EQUIVALENT
from generator.rules.load import load_definitions
from kernel_judge.definition import WORKLOAD
from tests.unit.mutation.one_workload import FIRST, Silent, dataset_of_one_workload

# the precision of the second part shows where there are more than 150 rows
ADDED = FIRST + (
    "    rest = (x[150:] * 1001).float() - x[150:] * 1000\n"
    "    x = torch.cat([x[:150].float(), rest])\n"
)
SAME, OTHER = "10:19 x[:150].float()", "9:11 (x[150:] * 1001).float()"


@pytest.fixture
def job(tmp_path: Path) -> AuditJob:
    root = dataset_of_one_workload(tmp_path, ADDED)
    (definition,) = load_definitions(root).definitions
    return prepare(definition, None, None, root)


def results(job: AuditJob) -> dict[str, MutantResult]:
    return {result.name: result for _, result in run_all(job, 1)}


def is_workload(self: PreparedCase) -> bool:
    return self.case.size == WORKLOAD


@pytest.mark.parametrize("can_be_followed", [True, False])
def test_all_mutants_fare_as_they_do_without_slow_cases(
    job, monkeypatch, can_be_followed
):
    monkeypatch.setattr(Watch, "of", lambda *ignored: None)
    monkeypatch.setattr(PreparedCase, "is_slow", property(lambda self: False))
    before = results(job)
    if can_be_followed:
        monkeypatch.undo()
    monkeypatch.setattr(PreparedCase, "is_slow", property(is_workload))
    asked: list[list[int]] = []
    unchanged = mutant_workers.unchanged

    def noted(job, places, waiting, ask, *, slow):
        same = unchanged(job, places, waiting, ask, slow=slow)
        asked.append([place for place in places if place not in same])
        return same

    monkeypatch.setattr(mutant_workers, "unchanged", noted)
    after = results(job)
    assert {n: r.status for n, r in after.items()} == {
        n: r.status for n, r in before.items()
    }
    (other,) = (r for n, r in after.items() if n.startswith(f"precision {OTHER}"))
    assert (other.status, other.case) == (CAUGHT, "workload one")
    (same,) = (r for n, r in after.items() if n.startswith(f"precision {SAME}"))
    why = NO_OTHER_VALUE if can_be_followed else "the same bits in 200 random cases"
    assert (same.status, same.why) == (EQUIVALENT, why)
    # in the slow case some run together, and changes of other kinds alone
    casts = [place for place in asked[1] if job.planned[place].is_cast]
    assert bool(len(casts) > 2) != can_be_followed
    assert max(map(len, job.groups(casts))) > 1 or can_be_followed


def test_a_reference_that_fails_in_a_slow_case_where_mutants_run_is_told(
    tmp_path, monkeypatch
):
    here = f"{FIRST}    import os\n    if len(x) == 201 and os.getpid() != {os.getpid()}:\n"
    root = dataset_of_one_workload(
        tmp_path, here + "        raise ValueError('here')\n"
    )
    (definition,) = load_definitions(root).definitions
    job = prepare(definition, None, None, root)
    monkeypatch.setattr(PreparedCase, "is_slow", property(is_workload))
    why = "in case workload one where mutants run: raised ValueError: here"
    with pytest.raises(CannotRun, match=why):
        results(job)


def audited(root: Path, lanes: int = 1) -> dict[str, Any]:
    (definition,) = load_definitions(root).definitions
    file = asdict(DatasetFile("rmsnorm", definition.name, definition.path))
    more = {"limits": False, "tolerance": None, "lanes": lanes, "sharing": 1}
    return task_functions.audit({"root": str(root), "file": file, **more}, Silent())


@pytest.fixture
def prepared(monkeypatch) -> list[AuditJob]:
    """Collect the jobs that an audit prepares; its workload is a slow case."""
    jobs: list[AuditJob] = []

    def preparing(*given: Any, **named: Any) -> AuditJob:
        jobs.append(prepare(*given, **named))
        return jobs[-1]

    monkeypatch.setattr(task_functions, "prepare", preparing)
    # this process runs other tests
    monkeypatch.setattr(task_functions, "keep_freed_memory", lambda: None)
    monkeypatch.setattr(PreparedCase, "is_slow", property(is_workload))
    return jobs


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("can_be_followed", [True, False])
def test_a_right_reference_is_proven_where_mutants_run(
    tmp_path, prepared, monkeypatch, lanes, can_be_followed
):
    if not can_be_followed:
        monkeypatch.setattr(Watch, "of", lambda *ignored: None)
    root = dataset_of_one_workload(tmp_path, ADDED)
    after = audited(root, lanes)
    (job,) = prepared
    assert job.runner.postponed == ["workload one"]
    assert not after["left_out"]
    monkeypatch.setattr(
        task_functions, "prepare", lambda *given, postpones=False: prepare(*given)
    )
    before = audited(root)
    assert [m["status"] for m in after["mutants"]] == [
        m["status"] for m in before["mutants"]
    ]


def test_a_slow_workload_may_need_more_memory_than_the_tensors_of_its_case(
    tmp_path, prepared
):
    more = (
        "    if x.shape[0] == 201:\n        torch.empty(3 * 2**30, dtype=torch.uint8)\n"
    )
    result = audited(dataset_of_one_workload(tmp_path, FIRST + more))
    assert not result["left_out"]
    assert len(prepared) == 1


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("x = x + 0.5", "test_matches_oracle"),
        ("hidden_states += 1", "test_inputs_unmodified"),
        ("raise ValueError", "test_output_shape"),
    ],
)
def test_a_reference_that_is_wrong_in_a_slow_workload_alone_is_told(
    tmp_path, prepared, line, test
):
    more = f"    if x.shape[0] == 201:\n        {line}\n"
    result = audited(dataset_of_one_workload(tmp_path, FIRST + more))
    assert any(
        why.startswith(f"{test} in case workload one") for why in result["left_out"]
    )
    assert [job.runner.postponed for job in prepared] == [["workload one"], []]


def test_where_a_slow_case_shows_one_of_a_group_each_runs_alone(job, monkeypatch):
    monkeypatch.setattr(PreparedCase, "is_slow", property(is_workload))
    same, other = (
        next(
            n
            for n, planned in enumerate(job.planned)
            if planned.result.name.startswith(f"precision {start}")
        )
        for start in (SAME, OTHER)
    )
    assert job.groups([same, other]) == [[same, other]]
    assert job.are_same([same], slow=True)
    assert not job.are_same([same, other], slow=True)
    pending = {n: job.audit(n, lambda: None) for n in (same, other)}
    assert {result.status for result in pending.values()} == {PENDING}
    settled = dict(mutant_workers._settled(job, 1, 30.0, pending))
    assert [settled[n].status for n in (same, other)] == [EQUIVALENT, CAUGHT]


def test_changes_that_overlap_are_not_planted_together():
    code = SourceCode.parse("y = (a + b) * c\nz = y\n")
    product, total = code.find(ast.BinOp)
    last = next(n for n in code.find(ast.Name) if n.lineno == 2 and n.id == "y")
    edits = [Edit("", total, "é"), Edit("", last, "c")]
    assert code.with_edits(edits) == "y = (é) * c\nz = c\n"
    with pytest.raises(ValueError, match="overlap"):
        code.with_edits([Edit("", product, "a"), Edit("", total, "b")])
