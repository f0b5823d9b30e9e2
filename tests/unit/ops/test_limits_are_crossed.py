"""Each axis of each definition has a case beyond every power of two of its workloads."""

from __future__ import annotations

import json

from generator.rules.load import load_definitions
from generator.rules.subjects import subject_of
from tests.builders import ROOT


def maxima(op_type: str, name: str) -> dict[str, int]:
    """Return axis → its largest length in a definition's workloads."""
    found: dict[str, int] = {}
    path = ROOT / "workloads" / op_type / f"{name}.jsonl"
    for line in path.read_text().splitlines():
        for axis, length in json.loads(line)["workload"]["axes"].items():
            found[axis] = max(length, found.get(axis, 0))
    return found


def test_a_case_lies_beyond_every_power_of_two_that_a_workload_crosses():
    short = []
    for definition in load_definitions(ROOT).definitions:
        subject = subject_of(definition)
        cases = subject.cases(("small", "medium", "limits"))
        for axis, largest in maxima(definition.op_type, definition.name).items():
            limit = 1 << max((largest - 1).bit_length() - 1, 0)
            reached = max(case.axes.get(axis, 0) for case in cases)
            if largest > 2 and reached <= limit:
                short.append(f"{definition.name}: {axis} {reached}, limit {limit}")
    assert not short
