"""Every command's report in every format: texts are inert, and problems stream."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace

import pytest

from generator.ground_truth.recording_differences import (
    Drift,
    RecordingDifferences,
    differences_report,
)
from generator.mutation.mutants_result import DefinitionResult, MutantResult
from generator.mutation.report import mutants_report, seeds_report
from generator.mutation.seeds_result import Alarm, SeedsResult
from generator.mutation.tolerances.report import RULES, tolerances_report
from generator.mutation.tolerances.result import LAW, Floors, SourceFloor
from generator.problems import Problem, Severity
from generator.reports import FORMATS, printed
from generator.reports.report import Conclusion, Quoted, Report, Section, Status, Table
from generator.reports.report import Row as Cells
from generator.results.audits import SURVIVED
from tests.functional.test_hostile import PAYLOADS

BAD = [*PAYLOADS, "".join(PAYLOADS) * 50]


def of_mutants(bad: str) -> Report:
    mutant = MutantResult(bad, "x", SURVIVED, 3, bad, bad, bad, bad, bad)
    failed = DefinitionResult(
        bad, bad, "", (mutant,), {bad: 1}, left_out=(bad,), error=bad
    )
    return mutants_report([failed, DefinitionResult("fine", "gemm", "")])


def of_seeds(bad: str) -> Report:
    alarm = Alarm(bad, bad, 3, bad)
    counts = {"tests": {bad: 1}, "skipped": {bad: 2}, "reduced": {bad: 1}}
    failed = SeedsResult(bad, bad, "", (1, 4), alarms=(alarm,) * 5, error=bad, **counts)
    fine = SeedsResult("fine", "gemm", "", (1, 4), tests={"test_contract": 4})
    return seeds_report([failed, fine], (1, 4))


def of_floors(bad: str) -> Report:
    row = SourceFloor(bad, bad, bad, bad, bad, why_none=LAW)
    found = Floors(bad, bad, bad, (row,), {bad: 0.5}, {bad: 1}, (bad,), error=bad)
    problem = Problem(RULES[0].id, Severity.ERROR, bad, "", "Tight.", "Widen it.")
    return tolerances_report([found], [problem])


def of_recordings(bad: str) -> Report:
    drift = Drift(bad, bad, bad, bad, bad, bad, 9, 8, 0.5, 0.25, None, 1e-9)
    return differences_report(RecordingDifferences((drift,), 1, (bad,)))


BUILDERS = (of_mutants, of_seeds, of_floors, of_recordings)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("builder", BUILDERS)
@pytest.mark.parametrize("bad", BAD)
def test_texts_are_inert_in_every_format(builder, form, bad) -> None:
    text = "".join(printed(builder(bad), form))
    assert all(line.isprintable() for line in text.split("\n"))
    if form == "json":
        json.loads(text)
    if form == "sarif":
        (log,) = json.loads(text)["runs"]
        (said,) = log["invocations"]
        for notice in (*log["results"], *said["toolExecutionNotifications"]):
            message = notice["message"]["text"]
            assert message.isprintable()
            assert re.search(r"(?<!\\)(\\\\)*\[", message) is None
    if form == "github":
        lines = text.splitlines()
        assert all(line.startswith("::error ") for line in lines[:-1])
        assert "::" not in lines[-1]
    if form == "markdown":
        assert len(text) <= 60_000
        own = re.sub(r"<code>[^<]*</code>", "", text)
        assert re.search(r"<(?!/?(details|summary)\b)", own) is None
        assert text.count("<details") == text.count("</details>")


@pytest.mark.parametrize("builder", BUILDERS)
def test_what_failed_fails_in_junit(builder) -> None:
    report = builder("bad")
    assert report.conclude().status is Status.FAILED
    suite = ET.fromstring("".join(printed(report, "junit")))
    names = {case.get("name"): case for case in suite.iter("testcase")}
    failed = [name for name, case in names.items() if case.find("failure") is not None]
    assert len(failed) == int(suite.get("failures", "")) > 0
    assert any((name or "").startswith("bad") for name in failed)
    assert "fine" not in failed


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_problems_are_printed_as_they_come(form) -> None:
    drawn = 0

    def endless() -> Iterator[Problem]:
        nonlocal drawn
        while True:
            drawn += 1
            message = f"Number {drawn}."
            yield Problem(RULES[0].id, Severity.ERROR, "a.json", "", message, "Fix it.")

    problems = endless()
    report = Report(
        title="Many",
        command="x",
        conclusion=Conclusion(Status.FAILED, "never asked"),
        payload={"problems": (problem.as_dict() for problem in problems)},
        problems=problems,
        rules={"some": RULES},
    )
    assert any("Number 7." in piece for piece in printed(report, form))
    # in text a file waits until it is known whether it has an error, but not for long
    assert drawn == 7 or (form == "text" and drawn < 2000)


def test_files_with_an_error_come_last_and_rules_are_counted() -> None:
    problems = [
        Problem(RULES[n % 2].id, severity, f"{file}.json", "", "Wrong.", "Mend it.")
        for file, severity in (
            ("a", Severity.ERROR),
            ("b", Severity.WARNING),
            ("c", Severity.WARNING),
        )
        for n in range(8)
    ]
    report = Report(
        title="Some",
        command="x",
        conclusion=Conclusion(Status.FAILED, "the end"),
        payload={},
        problems=problems,
        rules={"some": RULES},
    )
    lines = "".join(printed(report, "text")).splitlines()
    assert [line for line in lines if line.endswith(".json")] == [
        "b.json",
        "c.json",
        "a.json",
    ]
    start = lines.index("by rule")
    counted = [line.split() for line in lines[start + 1 : -1]]
    assert [one[:2] for one in counted] == [["8", "warning"]] * 2 + [["4", "error"]] * 2
    assert lines[-1] == "the end"
    few = replace(report, problems=problems[:3])
    assert "by rule" not in "".join(printed(few, "text"))


def test_a_page_has_all_and_a_comment_what_fits() -> None:
    rows = [Cells((Quoted(f"row {n} {'x' * 100}"),)) for n in range(1000)]
    sections = [Section(name, [Table(rows)]) for name in ("First", "Second")]
    conclusion = Conclusion(Status.PASSED, "Fine.")
    made = {"conclusion": conclusion, "payload": {}, "sections": sections}
    comment = "".join(printed(Report("Many", "all of it", **made), "markdown"))
    assert comment.startswith("### Many: passed\n\nFine.\n")
    assert len(comment) <= 60_000
    assert "<summary>Second (1000)</summary>" in comment
    assert len(re.findall(r"\n[0-9]+ more: run `all of it` for all\.\n", comment)) == 2
    page = "".join(printed(Report("Many", "", **made, is_page=True), "markdown"))
    assert page.count("<code>row 999 ") == 2
    assert page.startswith("# Many\n\nFine.\n\n## First\n\n- <code>row 0 ")


def test_a_long_table_is_drawn_piece_by_piece_as_if_it_were_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The widths are those of all rows; the head stands once, the totals at the end."""
    rows = [Cells((f"n{n}", "x" * (n % 90), str(n * n))) for n in range(23)]
    table = Table(rows, ("name", "text", "size"), ("text",), totals=("all", "", "23"))
    report = Report(
        "title",
        "command",
        Conclusion(Status.PASSED, ""),
        {},
        [Section("", [table])],
    )
    whole = "".join(printed(report, "text"))
    monkeypatch.setattr("generator.reports.text._AT_ONCE", 5)
    pieces = "".join(printed(report, "text"))
    assert "all" in whole.splitlines()[-2]
    # a head and totals have a rule, which no piece between them has
    assert pieces.replace("\n\n", "\n") == whole.replace("\n\n", "\n")
