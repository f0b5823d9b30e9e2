"""The smallest workload of each reference text, as flashinfer-bench draws it, is finite."""

from __future__ import annotations

from functools import cache
from typing import Any

from generator.dataset.definition import LoadedDefinition
from generator.dataset.json_file import read_json_lines
from generator.evaluation.checkers.drawn_workload import not_finite
from generator.rules.load import load_definitions
from generator.rules.subjects import declared_definition
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import tensor_bytes
from tests.builders import ROOT
from tools.runner_draws import INFINITE

MOST_BYTES = 16 << 20


@cache
def smallest() -> dict[tuple[str, str], tuple[int, LoadedDefinition, Any]]:
    """Return op_type and text → bytes, definition and workload, the least of each."""
    least: dict[tuple[str, str], tuple[int, LoadedDefinition, Any]] = {}
    for definition in load_definitions(ROOT).definitions:
        # constants at the top are what differs between definitions of one text
        lines = definition.reference.splitlines()
        text = "\n".join(line for line in lines if not line[:1].isupper())
        key = (definition.op_type, text)
        known = declared_definition(definition)
        path = f"workloads/{definition.op_type}/{definition.name}.jsonl"
        for _, line in read_json_lines(ROOT, path).lines:
            workload = line["workload"]
            size = tensor_bytes(known, Case("workload", "medium", workload["axes"]))
            if key not in least or size < least[key][0]:
                least[key] = size, definition, workload
    return least


def test_outputs_are_finite_with_the_domains_that_definitions_state() -> None:
    asked, wrong = 0, {}
    for size, definition, workload in smallest().values():
        if size > MOST_BYTES or definition.name.startswith(INFINITE):
            continue
        asked += 1
        shares = not_finite(definition, workload, ROOT)
        if shares:
            wrong[definition.name] = shares
    assert not wrong
    # larger ones are asked by tools/runner_draws.py
    assert asked > 0.75 * len(smallest())
