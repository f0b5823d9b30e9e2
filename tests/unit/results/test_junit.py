"""JUnit files, also foreign and damaged ones: results, or one line."""

from __future__ import annotations

import json
from xml.sax.saxutils import quoteattr

import pytest

from generator.problems import Failure
from generator.results.run_results import read_results
from tests.results import CPU, comparison


def result(*records, ending="", seconds="1.5", function="test_matches_oracle", **more):
    """Return the element of one test; `ending` is what its outcome adds."""
    pairs = [("definition", "gemm_n8_k4"), *more.items()]
    pairs += [("comparison", json.dumps(record)) for record in records]
    return (
        f'<testcase classname="rendered.TestD" name="{function}[a]" time="{seconds}">'
        f"{properties(pairs)}{ending}</testcase>"
    )


def properties(pairs):
    items = (f"<property name={quoteattr(n)} value={quoteattr(v)}/>" for n, v in pairs)
    return f"<properties>{''.join(items)}</properties>"


def junit(*tests, machine=CPU):
    return (
        '<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest" '
        f'timestamp="2026-11-21T10:00:00+00:00">{properties(machine.items())}'
        f"{''.join(tests)}</testsuite></testsuites>"
    )


def test_a_test_is_read_with_its_machine_and_its_comparisons(tmp_path):
    record = comparison(findings=['"<lse>" & more'])
    skipped = '<skipped message="oracle: too large"/>'
    failed = '<failure message="\n  AssertionError: far off">trace</failure>'
    path = tmp_path / "r.xml"
    tests = (
        result(record, sha256="ab", source="oracle"),
        result(source="flashinfer/fa2", ending=skipped, skip_kind="needs-memory"),
        result(function="test_determinism", ending=failed),
        '<testcase name="test_of_somebody_else"/>',
    )
    machine = {**CPU, "HOME": "not a fact", "gpu": "NVIDIA\nH200"}
    path.write_text(junit(*tests, machine=machine))
    found = read_results(path)
    assert found.date == "2026-11-21"
    assert found.machine == {**CPU, "gpu": r"NVIDIA\nH200"}
    one, two, three = found.tests
    assert (one.source, one.sha256, one.status) == ("oracle", "ab", "passed")
    assert (one.test, one.seconds) == ("TestD::test_matches_oracle[a]", 1.5)
    assert one.comparisons == (record,)
    assert (two.status, two.message) == ("skipped", "oracle: too large")
    assert two.skip_kind == "needs-memory"
    assert (three.function, three.source) == ("test_determinism", None)
    assert (three.status, three.message) == ("failed", "AssertionError: far off")


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
        (
            '<?xml version="1.0" encoding="x"?><a/>',
            "is not JUnit XML: unknown encoding",
        ),
        ("<testsuites/>", "holds no reference test: make it by pytest "),
        (BOMB, "is not JUnit XML: it has a document type"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>', "it has a document type"),
        (junit("<testcase/>"), "holds no reference test"),
        (junit(result([])), "test result: 'comparisons' item 0 must be an object"),
        (junit(result(seconds="soon")), "could not convert string to float: 'soon'"),
        (
            junit(
                result().replace("</p", '<property name="comparison" value="{"/></p')
            ),
            "damaged test result: Expecting property name",
        ),
    ],
)
def test_a_file_that_holds_no_results_is_one_line(tmp_path, text, reason):
    path = tmp_path / "broken.xml"
    path.write_text(text)
    with pytest.raises(Failure, match=r"broken\.xml ") as caught:
        read_results(path)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_one_line(tmp_path):
    path = tmp_path / "broken.xml"
    path.write_bytes(b"\xff\xfe\x00<\x00\xd8")
    with pytest.raises(Failure, match="is not JUnit XML"):
        read_results(path)
