"""What a run compared, summed up from its JUnit file."""

from __future__ import annotations

import json
from xml.sax.saxutils import quoteattr

import pytest

from generator.report import Row, markdown_table, read_comparisons, summarise


def record(definition="d", source="oracle", case="a", output="output", **figures):
    base = {"verdict": "PASSED", "nmse": 1e-9, "max_abs": 1e-4}
    where = {"definition": definition, "source": source, "case": case}
    return {**where, "output": output, **base, **figures}


def write_junit(path, records):
    properties = "".join(
        f"<property name='comparison' value={quoteattr(json.dumps(r))}/>"
        for r in records
    )
    path.write_text(
        "<testsuites><testsuite><testcase><properties>"
        f"<property name='other' value='no'/>{properties}"
        "</properties></testcase><testcase/></testsuite></testsuites>"
    )
    return path


def test_comparisons_are_read_in_the_files_order(tmp_path):
    records = [record(case="b"), record(case="a"), record(output='"<lse>"')]
    path = write_junit(tmp_path / "junit.xml", records)
    assert list(read_comparisons(path)) == records


def test_what_is_no_junit_file_is_one_line(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_text("<testsuites>")
    with pytest.raises(ValueError, match=r"broken\.xml is not JUnit XML: ") as caught:
        list(read_comparisons(path))
    assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        list(read_comparisons(tmp_path / "missing.xml"))


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


def test_the_table_shows_the_lse_by_its_error():
    rows = [
        Row("a", "oracle", 3, "PASSED", {"output": 2e-6, "lse": 9.0}, {"lse": 5e-7}),
        Row("b", "pytorch/cublas", 1, "FAILED", {"C": 1e-3}, {"C": 0.5}),
        Row("c", "oracle", 1, "FAILED", {}, {}),
    ]
    assert markdown_table(rows).splitlines()[2:] == [
        "| a | oracle | 3 | PASSED | 2.0e-06 | 5.0e-07 |",
        "| b | pytorch/cublas | 1 | FAILED | 1.0e-03 |  |",
        "| c | oracle | 1 | FAILED | 0.0e+00 |  |",
    ]
    columns = {line.count("|") for line in markdown_table(rows).splitlines()}
    assert columns == {7}
