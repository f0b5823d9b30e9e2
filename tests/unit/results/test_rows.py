"""What the tests of a run compared, summed up."""

from __future__ import annotations

import pytest

from generator.results.rows import summarise


def record(definition="d", source="oracle", case="a", output="output", **figures):
    base = {"verdict": "PASSED", "nmse": 1e-9, "max_abs": 1e-4}
    where = {"definition": definition, "source": source, "case": case}
    return {**where, "output": output, **base, **figures}


def test_a_row_is_one_definition_and_source_with_the_worst_figures():
    rows = summarise(
        [
            record("e"),
            record(case="a", nmse=1e-7),
            record(case="b", nmse=3e-7, max_abs=0.5),
            record(case="b", output="lse", nmse=0.0, max_abs=1e-6),
            record(source="flashinfer/fa2"),
        ]
    )
    assert [(r.definition, r.source, r.cases) for r in rows] == [
        ("d", "flashinfer/fa2", 1),
        ("d", "oracle", 2),
        ("e", "oracle", 1),
    ]
    assert rows[1].nmse == {"output": 3e-7, "lse": 0.0}
    assert rows[1].max_abs == {"output": 0.5, "lse": 1e-6}


@pytest.mark.parametrize(
    ("verdicts", "worst"),
    [
        (("PASSED", "PASSED"), "PASSED"),
        (("PASSED", "FAILED", "PASSED"), "FAILED"),
        (("FAILED", "ERROR", "PASSED"), "ERROR"),
    ],
)
def test_the_verdict_of_a_row_is_the_worst_one(verdicts, worst):
    (row,) = summarise(record(verdict=verdict) for verdict in verdicts)
    assert row.verdict == worst


def test_a_comparison_that_stopped_early_has_no_figures():
    stopped = record(verdict="FAILED")
    del stopped["nmse"], stopped["max_abs"]
    (row,) = summarise([stopped])
    assert (row.nmse, row.max_abs, row.verdict) == ({}, {}, "FAILED")


def test_nothing_compared_has_no_rows():
    assert summarise([]) == []


def test_figures_of_a_policy_are_a_range_and_the_hit_ratio_is_the_smallest():
    (row,) = summarise(
        [
            record(p_value=0.2, hit_ratio=1.0, not_independent=["eps"]),
            record(p_value=0.9, hit_ratio=0.9, worst=[1], findings=["x"]),
        ]
    )
    assert row.figures == {"p_value": (0.2, 0.9)}
    assert row.hit_ratio == {"output": 0.9}
    assert row.not_independent == ("eps",)
