"""Traces of a dataset: the best solution, who won, and what can't be believed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.json_file import MAX_BYTES
from generator.evaluation.trace_report import traces_report
from generator.evaluation.trace_statistics import (
    CONTRADICTED,
    STALE,
    TraceStatistics,
    statistics_of,
)
from generator.problems import Failure
from generator.reports import FORMATS, printed

NAME = "twice_n4"
KEY = ("twice", NAME)
H200, B200 = "NVIDIA H200", "NVIDIA B200"


def trace(
    solution: str = "fast", uuid: str = "u0", latency: float = 0.1, **changes: Any
) -> dict[str, Any]:
    """Return a PASSED trace whose reference takes 1 ms."""
    performance = {
        "latency_ms": latency,
        "reference_latency_ms": 1.0,
        "speedup_factor": 1.0 / latency,
    }
    evaluation = {
        "status": "PASSED",
        "environment": {"hardware": H200, "libs": {}},
        "timestamp": "2026-11-20T10:00:00",
        "correctness": {"max_relative_error": 0.1, "max_absolute_error": 0.1},
        "performance": performance,
    }
    size = {"u0": 1, "u1": 2}.get(uuid, 3)
    workload = {"uuid": uuid, "axes": {"b": size, "a": 7}, "inputs": {}}
    return {
        "definition": NAME,
        "workload": workload,
        "solution": solution,
        "evaluation": {**evaluation, **changes},
    }


def failed(status: str, *where: str, **changes: Any) -> dict[str, Any]:
    return trace(*where, status=status, performance=None, correctness=None, **changes)


def statistics(
    root: Path, *traces: Any, author: str = "alice", solutions: Any = ("fast", "slow")
) -> TraceStatistics:
    """Write the traces beside workloads u0 and u1 and solutions; return statistics."""

    def put(path: str, lines: list[str]) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("".join(f"{line}\n" for line in lines))

    workloads = [
        {"definition": NAME, "workload": {"uuid": u, "axes": {"a": 7, "b": b}}}
        for u, b in (("u0", 1), ("u1", 2))
    ]
    put(f"workloads/twice/{NAME}.jsonl", [json.dumps(line) for line in workloads])
    for solution in solutions:
        put(f"solutions/{author}/twice/{NAME}/{solution}.json", ["{}"])
    lines = [one if isinstance(one, str) else json.dumps(one) for one in traces]
    put(f"traces/{author}/twice/{NAME}.jsonl", lines)
    return statistics_of(root, [KEY])


def test_the_fastest_on_each_hardware_is_best(tmp_path: Path) -> None:
    found = statistics(
        tmp_path,
        trace("fast", "u0", 0.1),
        trace("fast", "u1", 0.4),
        trace("slow", "u0", 0.2),
        trace("slow", "u1", 0.3),
        trace("slow", "u0", 0.5, environment={"hardware": B200}),
    )
    assert found.is_fine
    assert found.traces == 5
    best = {row.hardware: row for row in found.solutions if row.is_best}
    assert best[H200].solution == "fast"
    assert best[H200].speedup == pytest.approx((10 * 2.5) ** 0.5)
    assert (best[H200].passed, best[H200].won, best[H200].contested) == (2, 1, 2)
    assert (best[B200].solution, best[B200].won, best[B200].contested) == ("slow", 1, 1)
    (author,) = found.authors
    assert (author.author, author.solutions) == ("alice", 2)
    assert (author.won, author.contested) == (3, 3)


@pytest.mark.parametrize(
    ("latencies", "errors", "won"),
    [
        # what two figures of one start may be off by: 2.6 µs
        ((0.0250, 0.0270), (None, None), (1, 1)),
        ((0.0250, 0.0280), (None, None), (1, 0)),
        # of several starts their error is known
        ((0.0250, 0.0260), (0.0005, 0.0005), (1, 0)),
        ((0.0250, 0.0255), (0.0005, 0.0005), (1, 1)),
        # nobody wins by stating that it may be off, nor by what is no error
        ((0.0250, 0.0400), (0.0005, 1e6), (1, 0)),
        ((0.0250, 0.0400), (0.0005, -1e6), (1, 0)),
        ((0.0250, 0.0400), (0.0005, "NaN"), (1, 0)),
        ((0.0250, 0.0400), (1e6, 0.0005), (1, 0)),
        ((0.0250, 0.0400), ("x", [1]), (1, 0)),
    ],
)
def test_a_difference_that_nobody_can_tell_wins_nothing(
    tmp_path: Path, latencies: Any, errors: Any, won: Any
) -> None:
    traces = []
    for name, latency, error in zip(("fast", "slow"), latencies, errors, strict=True):
        one = trace(name, "u0", latency)
        if error is not None:
            one["evaluation"]["performance"]["error_ms"] = error
        traces.append(one)
    found = statistics(tmp_path, *traces)
    assert (
        tuple(
            next(row.won for row in found.solutions if row.solution == name)
            for name in ("fast", "slow")
        )
        == won
    )


def test_who_fails_is_not_best_and_wins_nothing(tmp_path: Path) -> None:
    found = statistics(
        tmp_path,
        trace("fast", "u0", 0.01),
        failed("INCORRECT_NUMERICAL", "fast", "u1"),
        trace("slow", "u1", 0.5),
    )
    fast = next(row for row in found.solutions if row.solution == "fast")
    assert not fast.is_best
    assert (fast.traced, fast.passed, fast.won, fast.contested) == (2, 1, 1, 2)
    assert next(row for row in found.solutions if row.is_best).solution == "slow"


def test_nobody_is_best_where_nobody_passed(tmp_path: Path) -> None:
    found = statistics(tmp_path, failed("TIMEOUT"), failed("COMPILE_ERROR", "slow"))
    assert [row.is_best for row in found.solutions] == [False, False]
    assert found.solutions[0].speedup is None
    assert found.authors == ()


def test_of_several_traces_of_one_run_the_last_counts(tmp_path: Path) -> None:
    found = statistics(
        tmp_path,
        failed("RUNTIME_ERROR", timestamp="2026-11-21"),
        trace(latency=0.1, timestamp="2026-11-20"),
        trace("slow", latency=0.5, timestamp="2026-11-20"),
        trace("slow", latency=0.2, timestamp="2026-11-22"),
    )
    rows = {row.solution: row for row in found.solutions}
    assert (rows["fast"].passed, rows["fast"].traced) == (0, 1)
    assert rows["slow"].speedup == pytest.approx(5.0)
    assert (rows["slow"].won, rows["slow"].contested) == (1, 1)


OTHER_AXES = {"uuid": "u0", "axes": {"b": 1, "a": 8}, "inputs": {}}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (trace("gone"), "the dataset has no such solution"),
        (trace("fast", "u9"), "the definition has no such workload"),
        (
            {**trace(), "workload": OTHER_AXES},
            "the workload has other axes now",
        ),
    ],
)
def test_stale_traces_count_for_nothing(
    tmp_path: Path, line: dict[str, Any], reason: str
) -> None:
    found = statistics(tmp_path, line, trace("slow", "u1"))
    assert (found.stale, found.contradicted, found.is_fine) == (1, 0, False)
    (doubtful,) = found.doubtful
    assert (doubtful.kind, doubtful.reason) == (STALE, reason)
    assert doubtful.file == f"traces/alice/twice/{NAME}.jsonl"
    assert [row.solution for row in found.solutions] == ["slow"]


def test_traces_of_a_definition_that_is_gone_are_stale(tmp_path: Path) -> None:
    statistics(tmp_path, trace())
    found = statistics_of(tmp_path, [("twice", "another")])
    assert [d.reason for d in found.doubtful] == ["the dataset has no such definition"]
    with pytest.raises(Failure, match="There are no traces in"):
        statistics_of(tmp_path, [("twice", "another")], is_part=True)


@pytest.mark.parametrize(
    ("lines", "count", "reason"),
    [
        (
            (trace(), failed("INCORRECT_NUMERICAL")),
            2,
            "traces of this solution and workload say PASSED and INCORRECT_NUMERICAL",
        ),
        (
            (trace(correctness={"max_absolute_error": "NaN"}),),
            1,
            "it is PASSED with an error of nan",
        ),
        (
            (
                trace(
                    performance={
                        "latency_ms": 0.5,
                        "reference_latency_ms": 1.0,
                        "speedup_factor": 20.0,
                    }
                ),
            ),
            1,
            "it states a speedup of 20, and its latencies give 2",
        ),
    ],
)
def test_contradicted_traces_count_for_nothing(
    tmp_path: Path, lines: tuple[Any, ...], count: int, reason: str
) -> None:
    found = statistics(tmp_path, *lines, trace("slow", "u1"))
    assert (found.stale, found.contradicted) == (0, count)
    assert {d.reason for d in found.doubtful} == {reason}
    assert {d.kind for d in found.doubtful} == {CONTRADICTED}
    assert [row.solution for row in found.solutions] == ["slow"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '"text"',
        "null",
        "{}",
        json.dumps({**trace(), "solution": None}),
        json.dumps({**trace(), "evaluation": None}),
        json.dumps({**trace(), "workload": []}),
        "[" * 5000,
    ],
)
def test_a_line_that_is_no_trace_is_counted(tmp_path: Path, line: str) -> None:
    found = statistics(tmp_path, line, trace())
    assert (found.traces, found.unreadable) == (2, 1)
    assert [row.solution for row in found.solutions] == ["fast"]


def test_fields_may_have_any_type(tmp_path: Path) -> None:
    odd = trace("slow")
    odd["evaluation"]["performance"] = {"latency_ms": [], "speedup_factor": "x"}
    odd["evaluation"]["environment"] = 3
    found = statistics(tmp_path, odd, trace())
    assert found.unreadable == 0
    assert {(row.solution, row.speedup is None) for row in found.solutions} == {
        ("fast", False),
        ("slow", True),
    }


def test_names_are_no_patterns_and_no_queries(tmp_path: Path) -> None:
    root = tmp_path / "a[b]*'; DROP TABLE trace; --"
    (tmp_path / "ab").mkdir()
    found = statistics(root, trace(), author="o'[x]")
    assert found.is_fine
    (row,) = found.solutions
    assert row.author == "o'[x]"


@pytest.mark.parametrize("form", FORMATS)
def test_texts_of_traces_are_inert(tmp_path: Path, form: str) -> None:
    bad = "\x1b[31m\n::error::<script>|`"
    odd = trace("fast", environment={"hardware": bad})
    found = statistics(tmp_path, odd, trace(bad, "u1"))
    text = "".join(printed(traces_report(found), form))
    assert all(line.isprintable() for line in text.split("\n"))
    if form == "json":
        told = json.loads(text)
        assert told["solutions"][0]["hardware"] == bad
        assert told["doubtful"][0]["kind"] == STALE
    if form == "markdown":
        assert "<script>" not in text


@pytest.mark.parametrize(
    ("make", "kind"), [(os.mkfifo, "a device or a pipe"), (os.mkdir, "a folder")]
)
def test_what_is_no_file_is_not_waited_for(
    tmp_path: Path, make: Any, kind: str
) -> None:
    statistics(tmp_path, trace())
    make(tmp_path / "traces/alice/twice/another.jsonl")
    with pytest.raises(
        Failure, match=rf"traces/alice/twice/another\.jsonl .*is {kind}, not a file"
    ):
        statistics_of(tmp_path, [KEY])


def test_a_file_that_validate_refuses_is_not_read(tmp_path: Path) -> None:
    statistics(tmp_path, trace())
    (tmp_path / "traces/alice/twice/another.jsonl").write_bytes(b"")
    os.truncate(tmp_path / "traces/alice/twice/another.jsonl", MAX_BYTES + 1)
    with pytest.raises(Failure, match="more than the 16 MiB that are read"):
        statistics_of(tmp_path, [KEY])


def test_without_duckdb_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(Failure, match=r"pip install 'gen-tests\[traces\]'"):
        statistics_of(tmp_path, [KEY])
