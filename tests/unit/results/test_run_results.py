"""Results files, also foreign, damaged and hostile ones: results, or one line."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.problems import Failure
from generator.results.run_results import parse_results, read_results
from generator.running.evidence import FORMAT
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
    with pytest.raises(Failure, match=r"^r\.jsonl is not a results file of pytest"):
        parse_results(text.encode("latin-1"), "r.jsonl")


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ([], "The value must be an object, is an array of 0 items."),
        (result(test=None), "'test' must be a string, is null."),
        (result(definition=1), "'definition' must be a string, is 1."),
        (result(definition=""), "'definition' must have at least 1 character, has 0."),
        (result(sha256=1), "'sha256' must be a string, is 1."),
        (result(source=1), "'source' must be a string or null, is 1."),
        (
            result(ending=("PASSED", "")),
            "is 'PASSED'. Did you mean 'passed'?",
        ),
        (result(ending=("passed", [])), "'message' must be a string, is an array"),
        (result(skip_kind={}), "'skip_kind' must be a string, is an object"),
        (result(seconds="soon"), "'seconds' must be a number, is 'soon'."),
        (result(seconds=True), "'seconds' must be a number, is true."),
        (result(comparisons={}), "'comparisons' must be an array, is an object"),
        (result("oracle", []), "'comparisons' item 0 must be an object, is an array"),
        (result("oracle", comparison(1)), "'source' must be a string, is 1."),
        (result("oracle", {}), "'definition' is missing in 'comparisons' item 0."),
        (result("oracle", comparison(verdict="OK")), "'verdict' must be one of "),
        (result("oracle", comparison(verdict=[])), "'verdict' must be one of "),
        (result("oracle", comparison(nmse="0")), "'nmse' must be a number, is '0'."),
    ],
)
def test_a_damaged_test_is_one_line(test, reason):
    text = lines(result(), test).encode()
    with pytest.raises(Failure, match=r"^r\.jsonl has a damaged test ") as caught:
        parse_results(text, "r.jsonl")
    assert reason in str(caught.value)


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
        except Failure as error:
            said = str(error)
        assert "\n" not in said


def test_a_file_without_tests_says_how_to_make_one(tmp_path):
    path = write_results(tmp_path / "r.jsonl")
    made = r"r\.jsonl holds no reference test: make it by pytest .* --results r\.jsonl"
    with pytest.raises(Failure, match=made):
        read_results(path)
    with pytest.raises(FileNotFoundError):
        read_results(tmp_path / "missing.jsonl")


@pytest.mark.parametrize("name", ["r.jsonl", "r.xml"])
def test_a_file_that_is_too_large_is_not_parsed(tmp_path, monkeypatch, name):
    monkeypatch.setattr("generator.results.run_results.MAX_BYTES", 8)
    path = write_results(tmp_path / name, result())
    with pytest.raises(Failure, match="has more than 0 MiB"):
        read_results(path)


def test_the_plug_in_writes_the_format_that_is_read():
    assert json.loads(lines(result()).partition("\n")[0])["format"] == FORMAT
