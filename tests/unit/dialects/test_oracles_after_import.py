"""A problem of an op_type of ours is judged by our oracle once it is imported."""

from __future__ import annotations

from pathlib import Path

from generator.dialects.export import export_dataset
from generator.dialects.sources import read_source
from generator.dialects.write import write
from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from kernel_judge.checks.sources import oracle
from kernel_judge.inputs.memory import tensor_bytes
from tests.builders import ROOT, replaced

# of what a case is made of, so that asking takes milliseconds
LARGEST = 4 * 2**20


def imported(names, folder, change=lambda text: text):
    """Return what becomes of definitions in SOL-ExecBench's format and back."""
    problems, dataset = folder / "problems", folder / "dataset"
    rows = list(export_dataset(ROOT, "sol-execbench", problems, [], names))
    assert [row["reason"] for row in rows] == [None] * len(names)
    for path in problems.rglob("definition.json"):
        path.write_text(change(path.read_text()))
    assert all(
        one.value for one in write(read_source("sol-execbench", problems), dataset)
    )
    return load_definitions(dataset).definitions


def smallest(subject):
    """Return the first of the small cases, None where it is too large."""
    cases = (c for c in subject.op.cases(subject.definition) if c.size == "small")
    case = next(cases, None)
    if case is None or tensor_bytes(subject.definition, case) > LARGEST:
        return None
    return case


def test_problems_of_every_op_type_are_judged(tmp_path: Path) -> None:
    first = {d.op_type: d.name for d in reversed(load_definitions(ROOT).definitions)}
    definitions = imported(sorted(first.values()), tmp_path)
    assert {d.op_type for d in definitions} == set(first)
    asked = 0
    for definition in definitions:
        subject = subject_of(definition)
        assert subject.op.oracle is not None, definition.name
        assert not subject.unresolved, definition.name
        case = smallest(subject)
        if case is not None:
            result = oracle(subject, subject.trial(case))
            assert result.passed, (definition.name, result.skipped, result.defect)
            asked += 1
    # the others' smallest case has large weights, caches or vocabularies
    assert asked >= 30


def test_a_wrong_problem_is_not_judged_right(tmp_path: Path) -> None:
    def wrong(text: str) -> str:
        return replaced(text, "functional.silu(gate)", "functional.gelu(gate)")

    (definition,) = imported(["silu_and_mul_i512"], tmp_path, wrong)
    subject = subject_of(definition)
    result = oracle(subject, subject.trial(smallest(subject)))
    assert "FAILED" in (result.defect or "")
