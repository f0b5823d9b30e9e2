"""Hostile datasets: each is reported in one line, and nothing of it comes through."""

from __future__ import annotations

import json
import re
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator.problems import Problem
from generator.reports import FORMATS, printed
from generator.rules.basis import basis_of_bytes
from generator.validation.validate import Counts, make_plan, run_plan, validation_report
from tests.audits import AUDIT, audited, entry
from tests.functional import (
    hostile,
    hostile_places,
    hostile_solutions,
    hostile_verification,
)
from tests.functional.hostile import (
    DEFINITION,
    FILE,
    LINES,
    SOLUTION,
    SOLVED,
    TRACED,
    TRACES,
    WORKLOAD,
    make,
    write,
)
from tests.functional.test_validate import run

CASES = {
    **hostile.CASES,
    **hostile_solutions.CASES,
    **hostile_verification.CASES,
    **hostile_places.CASES,
}

PAYLOADS = [
    "\x1b[31mred\x1b]0;title\x07",
    "\r\n::error::injected\n::set-output name=x::y",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1)) ![x](https://x.example/p.png)",
    "| a | b |\n|---|---|\n# title @everyone #1 https://x.example",
    "`code` ``` ]]> &lt; &#60; </code></details> <!-- -->",
    "\u202egnp.exe\u2028\u2066\ufeff\x85",
    "' onload='x\" onload=\"x %0A::error::x {{7*7}} ${x}",
]
KINDS: dict[str, Any] = {
    FILE: DEFINITION,
    LINES: WORKLOAD,
    SOLUTION: SOLVED,
    TRACES: TRACED,
    AUDIT: {
        "format": 1,
        "definitions": {
            "gemm_n8_k4": entry(
                basis_of_bytes(json.dumps(DEFINITION).encode(), FILE), "x"
            )
        },
    },
}


def problems_of(root: Path) -> list[Problem]:
    return list(run_plan(make_plan(root), Counts()))


def reports_of(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each format with the report of everything, notes too."""
    for form in FORMATS:
        counts = Counts()
        problems = run_plan(make_plan(root), counts)
        report = validation_report(problems, counts, notes=True, strict=True)
        yield form, "".join(printed(report, form))


def test_the_good_dataset_is_good(tmp_path: Path) -> None:
    make(tmp_path)
    assert problems_of(tmp_path) == []


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 200


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_dataset(name: str, tmp_path: Path) -> None:
    rule, breaks = CASES[name]
    make(tmp_path)
    breaks(tmp_path)
    start = time.perf_counter()
    found = problems_of(tmp_path)
    assert time.perf_counter() - start < 10
    assert rule in [problem.rule for problem in found]
    assert all(str(problem).isprintable() for problem in found)
    assert all(len(str(problem)) < 5000 for problem in found)


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every string, and of every key of an object."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (*path, key)
            yield from _leaves(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _leaves(child, (*path, index))
    elif isinstance(value, str):
        yield path


def _replaced(value: Any, path: tuple[Any, ...], text: str, key: bool) -> Any:
    copied = json.loads(json.dumps(value))
    parent = copied
    for step in path[:-1]:
        parent = parent[step]
    if key and isinstance(parent, dict):
        parent[text] = parent.pop(path[-1])
    else:
        parent[path[-1]] = text
    return copied


def _every_field(root: Path, payload: str) -> None:
    """Write a dataset in which each text of each kind of file is the payload once."""
    make(root)
    for file, value in KINDS.items():
        folder, name = file.rsplit("/", 1)
        changed = [
            _replaced(value, path, payload, key)
            for path in dict.fromkeys(_leaves(value))
            for key in (False, True)
        ]
        changed += [{**value, "tags": [payload, f"model:{payload}", f"{payload}:x"]}]
        changed += [{**value, "constraints": [payload, f"M == '{payload}'"]}]
        if name.endswith(".jsonl"):
            write(root, file, "\n".join(json.dumps(c) for c in changed))
            continue
        for number, one in enumerate(changed):
            write(root, f"{folder}/n{number}.json", one)
    for number, extension in enumerate((".json", ".txt", "")):
        name = payload.replace("/", "_").replace("\0", "")[:60] + f"{number}{extension}"
        for folder in (
            "definitions/gemm",
            "workloads/gemm",
            "blob/workloads",
            "traces",
        ):
            write(root, f"{folder}/{name}", "{")


@pytest.mark.parametrize("payload", PAYLOADS)
def test_texts_of_an_audit_are_inert_too(payload: str, tmp_path: Path) -> None:
    make(tmp_path)
    audited(tmp_path, FILE, payload, torch=payload, reduced={payload: 1})
    (found,) = problems_of(tmp_path)
    assert found.rule == "audit-survivors"
    for form, text in reports_of(tmp_path):
        JUDGES[form](text, [found])
    done = run("verify", "--dataset", str(tmp_path))
    assert all(line.isprintable() for line in done.stdout.splitlines())
    assert "<script" not in done.stdout
    (row,) = [x for x in done.stdout.splitlines() if x.startswith("| <code>gemm")]
    own = re.sub(r"<code>[A-Za-z0-9 ,/=&#;-]*</code>", "", row)
    assert own == "|  |  |  |  |"


@pytest.mark.parametrize("payload", PAYLOADS)
def test_texts_are_inert_in_every_report(payload: str, tmp_path: Path) -> None:
    _every_field(tmp_path, payload)
    found = problems_of(tmp_path)
    assert len({problem.rule for problem in found}) > 12
    for form, text in reports_of(tmp_path):
        JUDGES[form](text, found)


def _judge_text(text: str, found: list[Problem]) -> None:
    assert text.isascii() or all(c.isprintable() for c in text.replace("\n", ""))
    lines = text.splitlines()
    known = ("  error: ", "  warning: ", "  note: ", "    fix: ")
    assert sum(line.startswith(known) for line in lines) == 2 * len(found)
    assert all(line.isprintable() for line in lines)


def _judge_json(text: str, found: list[Problem]) -> None:
    assert text.isascii()
    assert len(json.loads(text)["problems"]) == len(found)


def _judge_sarif(text: str, found: list[Problem]) -> None:
    assert text.isascii()
    (log,) = json.loads(text)["runs"]
    assert len(log["results"]) == len(found)
    for result in log["results"]:
        message = result["message"]["text"]
        assert message.isprintable()
        assert re.search(r"(?<!\\)(\\\\)*\[", message) is None
        (place,) = result["locations"]
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", uri)


def _judge_junit(text: str, found: list[Problem]) -> None:
    tree = ET.fromstring(text)
    tags = {element.tag for element in tree.iter()}
    assert tags <= {"testsuites", "testsuite", "testcase", "failure", "system-out"}
    for element in tree.iter():
        assert (element.text or "").replace("\n", "").isprintable()


def _judge_markdown(text: str, found: list[Problem]) -> None:
    assert text.isascii()
    assert len(text) <= 60_000
    own = re.sub(r"<code>[A-Za-z0-9 ,/=&#;-]*</code>", "", text)
    own = re.sub(r"</?details( open)?>|</?summary>", "", own)
    assert "<" not in own
    assert re.search(r"[@\[\]!\\]|http|&", own) is None


def _judge_github(text: str, found: list[Problem]) -> None:
    lines = text.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(found) + 1
    pattern = r"::(error|warning|notice) file=[^:,]*(,line=\d+)?,title=[a-z-]+::.+"
    assert all(re.fullmatch(pattern, line) for line in lines[:-1])
    assert all(line.isprintable() for line in lines)


JUDGES = {
    "text": _judge_text,
    "json": _judge_json,
    "sarif": _judge_sarif,
    "junit": _judge_junit,
    "markdown": _judge_markdown,
    "github": _judge_github,
}

ANY_TEXT = st.text(max_size=20) | st.sampled_from([*PAYLOADS, "M", "A", "run", "F16"])
ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """Return a file and its content with a few places changed, or bytes flipped."""
    file = draw(st.sampled_from(sorted(KINDS)))
    value = json.loads(json.dumps(KINDS[file]))
    for _ in range(draw(st.integers(0, 4))):
        places = [p for p in dict.fromkeys(_leaves(value)) if p]
        if not places:
            break
        path = draw(st.sampled_from(places))
        parent = value
        for step in path[:-1]:
            parent = parent[step]
        how = draw(st.sampled_from(["replace", "remove", "rename"]))
        if how == "replace" or not isinstance(parent, dict):
            parent[path[-1]] = draw(ANY_VALUE)
        elif how == "remove":
            del parent[path[-1]]
        else:
            parent[draw(ANY_TEXT)] = parent.pop(path[-1])
    content = bytearray(json.dumps(value), "utf-8")
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, max(0, len(content) - 1)))
        content[place : place + 1] = draw(st.binary(max_size=3))
    return file, bytes(content)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(changes=st.lists(mutated(), min_size=1, max_size=3))
def test_mutated_files_never_raise(
    tmp_path: Path, changes: list[tuple[str, bytes]]
) -> None:
    make(tmp_path)
    for file, content in changes:
        write(tmp_path, file, content)
    for form, text in reports_of(tmp_path):
        assert text
        if form != "junit":
            assert all(line.isprintable() for line in text.split("\n"))


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    file=st.sampled_from(sorted(KINDS)), value=ANY_VALUE, raw=st.none() | st.binary()
)
def test_arbitrary_content_never_raises(
    tmp_path: Path, file: str, value: Any, raw: bytes | None
) -> None:
    make(tmp_path)
    write(tmp_path, file, json.dumps(value) if raw is None else raw)
    assert all(str(problem).isprintable() for problem in problems_of(tmp_path))
