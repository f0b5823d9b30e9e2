"""What a results file says of where the error sits: hostile until shown otherwise."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from generator.problems import Failure
from generator.reports.json import plain
from generator.results.run_results import parse_results, read_error_map, read_results
from generator.review.executed import MOST, comparisons_of
from kernel_judge.comparison.error_map import BINS, LARGEST, NOT_FINITE, error_map
from kernel_judge.comparison.tolerance import Tolerance
from tests.results import comparison, lines, result

GOOD: dict[str, Any] = {
    "rows": 2,
    "columns": 3,
    "histogram": [0] * (BINS - 1) + [6],
    "grid": [[0.5, None, 3], [NOT_FINITE, 1.0, LARGEST]],
}


def test_what_is_written_can_be_read() -> None:
    actual = torch.tensor([[1.0, math.nan, 3.0]])
    made = error_map(actual, torch.zeros(1, 3), Tolerance(rtol=0.0, atol=1.0))
    found = read_error_map(json.loads(json.dumps(made)))
    assert json.loads(json.dumps(asdict(found))) == made
    assert max(found.ratios.values()) == math.inf


def test_the_worst_of_a_grid() -> None:
    found = read_error_map({**GOOD, "grid": [[0.5, None, 3], [0, 1, 2]]})
    assert max(found.ratios.values()) == found.ratios[0, 2] == 3.0
    assert read_error_map({**GOOD, "grid": [[None] * 3] * 2}).ratios == {}


BROKEN: list[Any] = [
    [],
    "x",
    {},
    *(
        {**GOOD, **changes}
        for changes in (
            {"rows": 0},
            {"rows": -2},
            {"rows": True},
            {"rows": "2"},
            {"rows": 2.0},
            {"columns": 10**400},
            {"columns": 4},
            {"rows": 1},
            {"histogram": None},
            {"histogram": [0] * (BINS + 1)},
            {"histogram": [7] + [0] * (BINS - 1)},
            {"histogram": [-1] + [0] * (BINS - 1)},
            {"histogram": ["<b>"] + [0] * (BINS - 1)},
            {"histogram": [0.5] + [0] * (BINS - 1)},
            {"grid": "x"},
            {"grid": [[0.5, None, 3]]},
            {"grid": [[0.5, None], [1, 2]]},
            {"grid": [["<script>", None, 3], [1, 2, 3]]},
            {"grid": [[math.nan, None, 3], [1, 2, 3]]},
            {"grid": [[math.inf, None, 3], [1, 2, 3]]},
            {"grid": [[-2, None, 3], [1, 2, 3]]},
            {"grid": [[10**400, None, 3], [1, 2, 3]]},
            {"grid": [[True, None, 3], [1, 2, 3]]},
            {"grid": [[{}, None, 3], [1, 2, 3]]},
        )
    ),
]


@pytest.mark.parametrize("value", BROKEN)
def test_results_with_a_broken_map_are_damaged(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(lines(result("oracle", comparison(where=value))))
    with pytest.raises(Failure, match=r"results\.jsonl has a damaged test result: "):
        read_results(path)


def test_a_comparison_may_have_no_map(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(lines(result("oracle", comparison(where=None))))
    assert read_results(path).tests[0].comparisons[0]["where"] is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner, max_size=5)
        ),
        max_leaves=10,
    )
)
def test_anything_is_a_map_or_refused(value: Any) -> None:
    for candidate in (value, {**GOOD, **value} if isinstance(value, dict) else value):
        text = lines(result("oracle", comparison(where=candidate)))
        try:
            (test,) = parse_results(text.encode(), "results.jsonl").tests
        except Failure:
            continue
        where = test.comparisons[0]["where"]
        if where is not None:
            json.dumps(asdict(read_error_map(where)), allow_nan=False)


def comparisons(tmp_path: Path, *tests: Any) -> Any:
    path = tmp_path / "results.jsonl"
    path.write_text(lines(*tests))
    return comparisons_of(read_results(path).tests, {"gemm_n8_k4"})


def test_what_is_bad_comes_first_and_figures_may_be_anything(tmp_path: Path) -> None:
    odd = {"nmse": 10**400, "hit_ratio": math.nan, "findings": ["a\x1b[31m", 3]}
    first, second = comparisons(
        tmp_path,
        result("oracle", comparison(findings="none")),
        result("oracle", comparison(verdict="FAILED", case="b\u202e", **odd)),
    )
    assert (first.verdict, first.case) == ("FAILED", "b\\u202e")
    assert first.findings == ("a\\x1b[31m", "3")
    assert plain(first)["nmse"] == "inf"
    assert plain(first)["hit_ratio"] == "nan"
    assert (second.verdict, second.findings) == ("PASSED", ())


def test_tests_without_a_comparison(tmp_path: Path) -> None:
    skipped = ("skipped", "no GPU")
    failed = ("failed", "AssertionError: output is float32")
    own, recorded, flashinfer = comparisons(
        tmp_path,
        result("flashinfer/fa2", ending=skipped),
        result("flashinfer/fa2", ending=skipped),
        result(None, ending=failed, function="test_output_dtype"),
        result("recorded", ending=failed),
    )
    assert (own.source, own.case) == ("its own tests", "test_output_dtype")
    assert own.findings == ("AssertionError: output is float32",)
    assert (recorded.source, recorded.verdict) == ("recorded", "ERROR")
    assert (flashinfer.verdict, flashinfer.findings) == ("SKIPPED", ("no GPU",))
    assert not flashinfer.is_bad


def test_other_definitions_and_too_many_are_left_out(tmp_path: Path) -> None:
    other = result("oracle", comparison(definition="b"), definition="b")
    mixed = result("oracle", comparison(definition="b"))
    assert comparisons(tmp_path, other, mixed) == ()
    many = [comparison(case=f"c{n}") for n in range(MOST + 5)]
    assert len(comparisons(tmp_path, result("oracle", *many))) == MOST
