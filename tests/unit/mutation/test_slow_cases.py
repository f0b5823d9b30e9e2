"""Mutants that are the reference in quick cases share the calls of slow ones."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from generator.mutation import mutant_workers
from generator.mutation.audit_job import PENDING, AuditJob, prepare
from generator.mutation.generic.code import Edit, SourceCode
from generator.mutation.mutant_workers import run_all
from generator.mutation.mutants_result import MutantResult
from generator.mutation.prepared_case import PreparedCase
from generator.results.audits import CAUGHT, EQUIVALENT
from generator.rules.load import load_definitions
from kernel_judge.definition import WORKLOAD
from tests.unit.mutation.one_workload import FIRST, dataset_of_one_workload

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


def test_all_mutants_fare_as_they_do_without_slow_cases(job, monkeypatch):
    monkeypatch.setattr(PreparedCase, "is_slow", property(lambda self: False))
    before = results(job)
    monkeypatch.setattr(PreparedCase, "is_slow", property(is_workload))
    shared: list[list[int]] = []
    settled = mutant_workers._settled

    def noted(job, lanes, seconds, pending):
        shared.extend(job.groups([*pending]))
        yield from settled(job, lanes, seconds, pending)

    monkeypatch.setattr(mutant_workers, "_settled", noted)
    after = results(job)
    assert {n: r.status for n, r in after.items()} == {
        n: r.status for n, r in before.items()
    }
    # some were planted together
    assert max(map(len, shared)) > 1
    (other,) = (r for n, r in after.items() if n.startswith(f"precision {OTHER}"))
    assert (other.status, other.case) == (CAUGHT, "workload one")
    (same,) = (r for n, r in after.items() if n.startswith(f"precision {SAME}"))
    assert (same.status, same.why) == (EQUIVALENT, "the same bits in 200 random cases")
    # changes of other kinds are not: one may hide another
    names = {job.planned[place].result.kind for group in shared for place in group}
    assert names == {"precision", "dropped"}


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
