"""JUnit files, also foreign and damaged ones: results, or one line."""

from __future__ import annotations

import pytest

from generator.junit import read_junit
from tests.junit import CPU, comparison, junit, properties, result, write_junit


def test_a_test_is_read_with_its_machine_and_its_comparisons(tmp_path):
    record = comparison(findings=['"<lse>" & more'])
    skipped = '<skipped message="oracle: too large"/>'
    failed = '<failure message="\n  AssertionError: far off">trace</failure>'
    path = write_junit(
        tmp_path / "r.xml",
        result("oracle", record, sha256="ab"),
        result("flashinfer/fa2", ending=skipped),
        result(None, function="test_determinism", ending=failed),
        '<testcase name="test_of_somebody_else"/>',
        machine={**CPU, "HOME": "not a fact", "gpu": "NVIDIA\nH200"},
    )
    found = read_junit(path)
    assert (found.date, found.machine) == (
        "2026-11-21",
        {**CPU, "gpu": r"NVIDIA\nH200"},
    )
    one, two, three = found.tests
    assert (one.source, one.sha256, one.status, one.seconds) == (
        "oracle",
        "ab",
        "passed",
        1.5,
    )
    assert one.comparisons == (record,)
    assert (two.status, two.message) == ("skipped", "oracle: too large")
    assert (three.function, three.source) == ("test_determinism", None)
    assert three.message == "AssertionError: far off"


BOMB = (
    '<!DOCTYPE b [<!ENTITY a "aaaaaaaaaa"><!ENTITY c "&a;&a;&a;&a;">]>'
    "<testsuites>&c;</testsuites>"
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is not JUnit XML: no element found"),
        ("no xml", "is not JUnit XML: syntax error"),
        ("<testsuites>", "is not JUnit XML: no element found"),
        ("<html/>", "is not JUnit XML: its root is 'html'"),
        ("<testsuites/>", "holds no reference test: make it by pytest "),
        (BOMB, "is not JUnit XML: it has a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "it has a document type"),
        (junit("<testcase/>"), "holds no reference test"),
        (junit(result("oracle", [])), "damaged test result: a comparison is no object"),
        (junit(result("oracle", {"source": 1})), "a comparison has no definition"),
        (junit(result("oracle", comparison(verdict="OK"))), "has no verdict"),
        (junit(result("oracle", comparison(nmse="0"))), "the nmse of a comparison is"),
        (junit(result(seconds="soon")), "could not convert string to float: 'soon'"),
        (
            junit(f"<testcase>{properties([('comparison', '{')])}</testcase>"),
            "damaged test result: Expecting property name",
        ),
    ],
)
def test_what_is_no_result_is_one_line(tmp_path, text, reason):
    path = tmp_path / "broken.xml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.xml ") as caught:
        read_junit(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_one_line(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_bytes(b"\xff\xfe\x00<\x00\xd8")
    with pytest.raises(ValueError, match="is not JUnit XML"):
        read_junit(path)
    with pytest.raises(FileNotFoundError):
        read_junit(tmp_path / "missing.xml")


def test_a_file_that_is_too_large_is_not_parsed(tmp_path, monkeypatch):
    monkeypatch.setattr("generator.junit.MAX_BYTES", 8)
    path = write_junit(tmp_path / "r.xml", result())
    with pytest.raises(ValueError, match="has more than 0 MiB"):
        read_junit(path)
