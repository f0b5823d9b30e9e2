"""Results files, also foreign, damaged and hostile ones: results, or one line."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.results.run_results import parse_results, read_results
from generator.testing.evidence import FORMAT
from tests.results import CPU, comparison, lines, result, write_results


def test_a_test_is_read_with_its_machine_and_its_comparisons(tmp_path):
    record = comparison(findings=['"<lse>" & more'])
    path = write_results(
        tmp_path / "r.jsonl",
        result("oracle", record, sha256="ab"),
        result("flashinfer/fa2", ending=("skipped", "no\x1b GPU"), skip_kind="x" * 99),
        result(None, function="test_determinism", ending=("failed", "far off")),
        machine={**CPU, "HOME": "not a fact", "gpu": "NVIDIA\nH200"},
    )
    found = read_results(path)
    assert found.date == "2026-11-21"
    assert found.machine == {**CPU, "gpu": r"NVIDIA\nH200"}
    one, two, three = found.tests
    assert (one.source, one.sha256, one.status) == ("oracle", "ab", "passed")
    assert (one.test, one.seconds) == ("TestD::test_matches_oracle[a]", 1.5)
    assert one.comparisons == (record,)
    assert (two.status, two.message) == ("skipped", r"no\x1b GPU")
    assert len(two.skip_kind) == 40
    assert (three.function, three.source) == ("test_determinism", None)


def test_what_a_killed_run_wrote_is_read():
    whole = lines(result(), result(source="sglang")).encode()
    for cut in range(len(whole.rstrip()), whole.rindex(b"\n", 0, -1), -1):
        found = parse_results(whole[:cut], "r.jsonl")
        assert [test.source for test in found.tests] == ["oracle"]


def test_figures_may_be_anything_that_is_a_number():
    odd = comparison(nmse=10**400, max_abs=math.nan, other=-(10**4000))
    text = lines(result("oracle", odd, seconds=math.nan))
    (test,) = parse_results(text.encode(), "r.jsonl").tests
    (record,) = test.comparisons
    assert (record["nmse"], record["other"]) == (math.inf, -math.inf)
    assert math.isnan(record["max_abs"])
    assert test.seconds == 0.0


FOREIGN = [
    "",
    "\n",
    "{}\n",
    "[]\n",
    "no json\n",
    "<testsuites/>\n",
    "\xff\n",
    "[" * 10**5,
]
HEADS = [
    '{"format": 2, "machine": {}}\n',
    '{"format": 1, "machine": []}\n',
    '{"format": 1}\n',
    lines(result()).partition("\n")[2],
]


@pytest.mark.parametrize("text", [*FOREIGN, FOREIGN[-1] + "\n", *HEADS])
def test_a_foreign_file_is_one_line(text):
    with pytest.raises(ValueError, match=r"^r\.jsonl is not a results file of pytest"):
        parse_results(text.encode("latin-1"), "r.jsonl")


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ([], "a test is no object"),
        (result(test=None), "a test has no test"),
        (result(definition=1), "a test has no definition"),
        (result(definition=""), "a test has no definition"),
        (result(sha256=1), "a test has no sha256"),
        (result(source=1), "a test has no source"),
        (result(ending=("PASSED", "")), "a test has no status"),
        (result(ending=("passed", [])), "a test has no message"),
        (result(skip_kind={}), "a test has no skip_kind"),
        (result(seconds="soon"), "the seconds of a test is no number"),
        (result(seconds=True), "the seconds of a test is no number"),
        (result(comparisons={}), "the comparisons of a test are no list"),
        (result("oracle", []), "a comparison is no object"),
        (result("oracle", {"source": 1}), "a comparison has no definition"),
        (result("oracle", comparison(verdict="OK")), "a comparison has no verdict"),
        (result("oracle", comparison(verdict=[])), "a comparison has no verdict"),
        (
            result("oracle", comparison(nmse="0")),
            "the nmse of a comparison is no number",
        ),
    ],
)
def test_a_damaged_test_is_one_line(test, reason):
    text = lines(result(), test).encode()
    with pytest.raises(ValueError, match=r"^r\.jsonl has a damaged ") as caught:
        parse_results(text, "r.jsonl")
    assert str(caught.value).endswith(f"test result: {reason}")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*result(), "x"]), inner, max_size=5)
        ),
        max_leaves=10,
    )
)
def test_anything_is_a_test_or_one_line(value):
    for test in (value, {**result(), **value} if isinstance(value, dict) else value):
        said = ""
        try:
            parse_results(lines(test).encode(), "r.jsonl")
        except ValueError as error:
            said = str(error)
        assert "\n" not in said


def test_a_file_without_tests_says_how_to_make_one(tmp_path):
    path = write_results(tmp_path / "r.jsonl")
    made = r"r\.jsonl holds no reference test: make it by pytest .* --results r\.jsonl"
    with pytest.raises(ValueError, match=made):
        read_results(path)
    with pytest.raises(FileNotFoundError):
        read_results(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("name", ["r.jsonl", "r.xml"])
def test_a_file_that_is_too_large_is_not_parsed(tmp_path, monkeypatch, name):
    monkeypatch.setattr("generator.results.run_results.MAX_BYTES", 8)
    path = write_results(tmp_path / name, result())
    with pytest.raises(ValueError, match="has more than 0 MiB"):
        read_results(path)


def test_the_plug_in_writes_the_format_that_is_read():
    assert json.loads(lines(result()).partition("\n")[0])["format"] == FORMAT
