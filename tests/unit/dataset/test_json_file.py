"""Strict reading: every oddity has its place, and nothing raises."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.dataset.json_file import MAX_DEPTH, parse, read_json, read_json_lines
from generator.problems import MAX_PROBLEMS


def _rules(problems: tuple[object, ...]) -> list[tuple[str, str]]:
    return [(p.rule, p.pointer) for p in problems]  # type: ignore[attr-defined]


def test_value_and_digest_of_a_good_file(tmp_path: Path) -> None:
    data = b'{"a": [1, 2.5, "\xc3\xa9"]}'
    (tmp_path / "x.json").write_bytes(data)
    read = read_json(tmp_path, "x.json")
    assert read.value == {"a": [1, 2.5, "é"]}
    assert read.problems == ()
    assert read.sha256 == hashlib.sha256(data).hexdigest()


def test_all_oddities_are_reported_in_one_pass() -> None:
    text = (
        '{"a": 1, "a/b": {"q": NaN, "q": -Infinity, "q": 1e999}, "a": "\\udc00",'
        ' "n": [0, ' + "7" * 5000 + "]}"
    )
    parsed = parse(text.encode(), "x.json")
    assert _rules(parsed.problems) == [
        ("json-duplicate-key", "/a"),
        ("json-duplicate-key", "/a~1b/q"),
        ("json-nan", "/a~1b/q"),
        ("json-nan", "/a~1b/q"),
        ("json-number", "/a~1b/q"),
        ("json-surrogate", "/a"),
        ("json-number", "/n/1"),
    ]
    assert parsed.value == {"a": "\udc00", "a/b": {"q": 0}, "n": [0, 0]}


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"a": 1, "a": 2}', "json-duplicate-key"),
        ('{"a": NaN}', "json-nan"),
        ('{"a": 1e999}', "json-number"),
        (f'{{"a": {"7" * 41}}}', "json-number"),
        ('{"a": "\\udc00"}', "json-surrogate"),
    ],
)
def test_an_oddity_alone_is_reported(text: str, rule: str) -> None:
    (problem,) = parse(text.encode(), "x.json").problems
    assert (problem.rule, problem.pointer) == (rule, "/a")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "The text is empty."),
        ('{"a": 1', 1, "The text ends before the JSON value does."),
        ('{"a":\n\n 1,}', 3, "Not JSON at line 3, column 4"),
        ("{'a': 1}", 1, "Not JSON at line 1, column 2"),
        ('{"a": 1} {}', 1, "Not JSON at line 1, column 10"),
    ],
)
def test_syntax_errors_say_where(text: str, line: int, message: str) -> None:
    problem = parse(text.encode(), "x.json").problems[0]
    assert (problem.rule, problem.line) == ("json-syntax", line)
    assert problem.message.startswith(message)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 10_000, 200_000])
@pytest.mark.parametrize(("start", "end"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_a_problem(depth: int, start: str, end: str) -> None:
    inner = "1" if start != "[" else ""
    parsed = parse((start * depth + inner + end * depth).encode(), "x.json")
    assert [p.rule for p in parsed.problems] == ["json-depth"]
    assert not parsed.ok


def test_the_deepest_allowed_nesting_is_fine() -> None:
    assert parse(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, "x.json").problems == ()


def test_a_200_mb_file_is_refused_without_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "x.json").open("wb") as stream:
        stream.truncate(200_000_000)
    # raises TypeError where it is called
    monkeypatch.setattr(os, "read", None)
    problem = read_json(tmp_path, "x.json").problems[0]
    assert problem.rule == "file-too-large"
    assert "190.7 MiB" in problem.message


def test_a_fifo_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.json")
    assert read_json(tmp_path, "x.json").problems[0].rule == "file-not-regular"


@pytest.mark.parametrize("name", ["missing.json", "nul\0byte.json", "x" * 300])
def test_a_file_that_cannot_be_opened(tmp_path: Path, name: str) -> None:
    read = read_json(tmp_path, name)
    assert [p.rule for p in read.problems] == ["file-unreadable"]
    assert not read.ok


def test_a_file_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.json").write_text("{}")

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Not chmod: the superuser may read everything.
    monkeypatch.setattr(os, "open", refuse)
    problem = read_json(tmp_path, "x.json").problems[0]
    assert problem.message == "The file can't be read: Permission denied."


def test_lines_are_read_independently(tmp_path: Path) -> None:
    lines = [b'{"a": 1}', b"{", b"", b'"\xff"', b'{"a": NaN}', b'"\xe2\x80\xa8"']
    (tmp_path / "x.jsonl").write_bytes(b"\r\n".join(lines) + b"\n\n")
    read = read_json_lines(tmp_path, "x.jsonl")
    assert [(p.rule, p.line) for p in read.problems] == [
        ("json-syntax", 2),
        ("jsonl-blank-line", 3),
        ("json-encoding", 4),
        ("json-nan", 5),
    ]
    assert read.lines == ((1, {"a": 1}), (5, {"a": 0}), (6, "\u2028"))
    assert read.count == 5


def test_one_value_over_many_lines_is_one_problem(tmp_path: Path) -> None:
    text = json.dumps({"a": [1, 2], "b": {}}, indent=2)
    (tmp_path / "x.jsonl").write_text(f"{text}\n")
    read = read_json_lines(tmp_path, "x.jsonl")
    assert [(p.rule, p.line) for p in read.problems] == [("json-syntax", 1)]
    assert "one line" in read.problems[0].fix
    assert read.lines == ()


def test_millions_of_bad_lines_are_cut(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(b"{\n" * 2_000_000)
    problems = read_json_lines(tmp_path, "x.jsonl").problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1].rule == "too-many-problems"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_what_json_writes_is_read_back_or_judged(value: object) -> None:
    parsed = parse(json.dumps(value).encode(), "x.json")
    assert parsed.ok
    if not parsed.problems:
        assert parsed.value == value
    for problem in parsed.problems:
        assert str(problem).isprintable()


@given(st.text())
def test_any_text_gives_a_value_or_problems(text: str) -> None:
    parsed = parse(text.encode(), "x.json")
    assert parsed.ok or parsed.problems
    assert all(str(problem).isprintable() for problem in parsed.problems)
