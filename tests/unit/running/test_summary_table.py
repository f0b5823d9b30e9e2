"""The table at the end of a run: what a row counts, and that it fits a terminal."""

from __future__ import annotations

import math

import pytest

from generator.running.summary_table import WIDTH, SummaryTable
from tests.unit.running.reports import finished, report


def compared(
    source, *, case="one", output="y", verdict="PASSED", definition="d", **more
):
    return {
        "definition": definition,
        "source": source,
        "case": case,
        "output": output,
        "verdict": verdict,
        **more,
    }


def table_of(*reports):
    table = SummaryTable()
    for found in reports:
        table.add(finished(found))
    return table


def rows_of(*reports):
    """Return source → line without its indentation; all are of rmsnorm."""
    lines = list(table_of(*reports).lines())
    assert all(len(line) <= WIDTH for line, _ in lines)
    assert lines[1] == ("rmsnorm", False)
    end = next(n for n, (line, _) in enumerate(lines) if " were compared" in line)
    found = [line.strip().partition("  ") for line, _ in lines[2:end]]
    return {source: " ".join(rest.split()) for source, _, rest in found}


def skipped(function, reason, **properties):
    return report(
        function, outcome="skipped", when="setup", reason=reason, **properties
    )


def test_a_row_has_counts_and_the_worst_errors():
    rows = rows_of(
        report(
            "test_matches_oracle",
            compared("oracle", nmse=2e-6, max_abs=1.0),
            compared("oracle", output="lse", nmse=9.0, max_abs=3e-5),
        ),
        report("test_matches_oracle", compared("oracle", case="two", nmse=4e-6)),
        report("test_contract"),
    )
    assert rows == {
        "oracle": "1/1 2 2 NMSE 4.0e-06, LSE 3.0e-05",
        "its own tests": "1 1",
    }


def test_nan_is_worse_than_any_number():
    values = (1e-6, math.nan, 2.0)
    rows = rows_of(
        *(report("test_matches_oracle", compared("oracle", nmse=v)) for v in values)
    )
    assert rows["oracle"].endswith("NMSE nan")


def test_a_test_of_several_recordings_counts_in_each_and_fails_in_its_own():
    rows = rows_of(
        report(
            "test_matches_recorded",
            compared("recorded:flashinfer/fa2", nmse=1e-6),
            compared("recorded:flashinfer/fa3", nmse=1.0, verdict="FAILED"),
            outcome="failed",
            source="recorded",
        )
    )
    assert rows == {
        "recorded:flashinfer/fa2": "1/1 1 1 NMSE 1.0e-06",
        "recorded:flashinfer/fa3": "1/1 1 1 FAILED; NMSE 1.0e+00",
    }


def test_an_error_of_a_test_that_compares_counts_for_its_source():
    rows = rows_of(
        report("test_matches_oracle", outcome="failed", when="setup", source="oracle"),
        report("test_contract", outcome="failed", when="teardown"),
    )
    assert rows == {"oracle": "0/1 1 FAILED", "its own tests": "1 1 FAILED"}


def test_backends_that_nobody_compared_are_one_row_of_their_provider():
    rows = rows_of(
        skipped("test_matches_x", "flashinfer: not installed", source="flashinfer/fa2"),
        skipped("test_matches_x", "flashinfer: not installed", source="flashinfer/fa3"),
        skipped("test_matches_x", "flashinfer: x needs SM100", source="flashinfer/x"),
        report("test_matches_x", compared("sglang/native"), source="sglang/native"),
        skipped("test_matches_x", "needs 63.4 GiB", source="sglang/native"),
    )
    assert rows == {
        "flashinfer": "0/1 3 (+1) not installed",
        "sglang/native": "1/1 1 1 1 needs 63.4 GiB",
    }


def test_relations_and_pairs_are_one_row_each_and_relations_compare_nothing():
    table = table_of(
        report("test_metamorphic", compared("metamorphic:a")),
        report("test_metamorphic", compared("metamorphic:b")),
        skipped("test_ground_truths_agree", "fewer than two"),
    )
    assert [source for _, source, _ in table.rows()] == [
        "ground truths agree",
        "metamorphic",
    ]
    assert table.compared == set()
    assert [line for line, _ in table.lines()][-2:] == [
        "0 of 1 definitions were compared",
        "not compared: d (not asked)",
    ]
    table.add(finished(report("test_ground_truths_agree", compared("a ~ b"))))
    assert table.compared == {"d"}


def test_it_is_sorted_by_op_type_then_source_and_names_failures():
    table = table_of(
        report("test_contract", op_type="rope"),
        report("test_matches_oracle", compared("oracle"), op_type="rope"),
        report(
            "test_matches_oracle",
            compared("oracle", verdict="FAILED"),
            outcome="failed",
            op_type="gemm",
        ),
    )
    keys = [(op_type, source) for op_type, source, _ in table.rows()]
    assert keys == [("gemm", "oracle"), ("rope", "oracle"), ("rope", "its own tests")]
    assert [is_red for _, is_red in table.lines()] == [0, 0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("source", ["s" * 200, "flashinfer/" + "b" * 60])
def test_long_names_and_reasons_fit(source):
    table = table_of(
        skipped("test_matches_x", "no " * 100, source=source),
        report("test_matches_x", compared(source), source=source),
    )
    assert all(len(line) <= WIDTH for line, _ in table.lines())


def test_a_table_of_nothing_is_empty():
    assert list(table_of().lines()) == []


def test_elsewhere_than_on_a_terminal_a_reason_is_whole():
    table = table_of(skipped("test_matches_x", "no " * 100, source="sglang"))

    assert ["no " * 99 in line for line, _ in table.lines(None)].count(True) == 1


def test_a_reason_that_several_op_types_share_is_one_line():
    reports = [
        skipped("test_x", "flashinfer: not installed", source="flashinfer", op_type=op)
        for op in "abcd"
    ]
    lines = [line for line, _ in table_of(*reports).lines()]
    assert lines[1:] == [
        "flashinfer: not installed, of 4 op_types",
        "0 of 1 definitions were compared",
        "not compared: d (not asked)",
    ]


def test_what_was_not_compared_is_named_with_the_oracle_s_reason():
    large = "needs 63.4 GiB, device has 8 GiB free"
    table = table_of(
        report("test_matches_oracle", compared("oracle"), source="oracle"),
        skipped("test_matches_oracle", large, source="oracle", definition="moe_e256"),
    )
    lines = [line for line, _ in table.lines()]
    assert lines[-2:] == [
        "1 of 2 definitions were compared",
        f"not compared: moe_e256 ({large})",
    ]
