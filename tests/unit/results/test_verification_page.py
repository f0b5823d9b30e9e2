"""The summary of the evidence: short, and its counts are those of the table."""

from __future__ import annotations

from functools import cache

from generator.dataset.paths import discover_definitions
from generator.reports import printed
from generator.results.audits import read_audits
from generator.results.evidence import kept_runs
from generator.results.verification import Verification, agreed, table_of
from generator.results.verification_page import verification_page
from tests.builders import ROOT


@cache
def table() -> Verification:
    found = discover_definitions(ROOT)
    return table_of(ROOT, found, kept_runs(ROOT), read_audits(ROOT))


def test_the_page_of_this_dataset_is_at_most_200_lines() -> None:
    page = "".join(printed(verification_page(table(), "rows.html"), "markdown"))
    assert len(page.splitlines()) <= 200


def test_each_definition_is_counted_once_by_its_best_source() -> None:
    counts = verification_page(table(), "rows.html").sections[1].tables[0]
    named = {line.definition for line in table().lines}
    columns = [sum(int(row.cells[i]) for row in counts.rows) for i in range(1, 6)]
    assert columns[0] == len(named) == sum(columns[1:])
    assert columns[4] == len(named - agreed(table().lines).keys())


def test_what_stands_out_is_everything_without_a_ground_truth() -> None:
    whole = verification_page(table(), "rows.html")
    shown = [row.cells for row in whole.sections[2].tables[0].rows]
    counts = whole.sections[1].tables[0].rows
    alone = {row.cells[0] for row in counts if row.cells[4] != "0"}
    nothing = {row.cells[0] for row in counts if row.cells[5] != "0"}
    assert {op for op, what, _ in shown if what == "the oracle alone"} == alone
    assert {op for op, what, _ in shown if what == "compared with nothing"} == nothing
