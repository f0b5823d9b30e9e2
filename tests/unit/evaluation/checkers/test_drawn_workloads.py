"""The smallest workload of each reference text, as flashinfer-bench draws it, is finite."""

from __future__ import annotations

from generator.evaluation.checkers.drawn_workload import not_finite
from tests.builders import ROOT
from tools.runner_draws import INFINITE, smallest

MOST_BYTES = 16 << 20


def test_outputs_are_finite_with_the_domains_that_definitions_state() -> None:
    asked, wrong, least = 0, {}, smallest()
    for size, definition, workload in least:
        if size > MOST_BYTES or definition.name.startswith(INFINITE):
            continue
        asked += 1
        shares = not_finite(definition, workload, ROOT)
        if shares:
            wrong[definition.name] = shares
    assert not wrong
    # larger ones are asked by tools/runner_draws.py
    assert asked > 0.75 * len(least)
