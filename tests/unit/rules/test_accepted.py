"""accepted.toml: which errors a dataset lives with, and what a file that is wrong does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from generator.problems import Severity, error
from generator.rules.accepted import ACCEPTED, read_accepted
from tests.builders import ROOT
from tests.validating import validate

ROUTE = error("route-interface: Something. Fix: Mend it. Finds: this")
NAMES = error("name-token: Something. Fix: Mend it. Finds: this")
FILE = "definitions/gemm/gemm_n8_k4.json"
ENTRY = """
[[accepted]]
rule = "route-interface"
reason = "finding 1"
definitions = ["gemm_n8_k4"]
"""


def accepted_of(folder: Path, text: str) -> Any:
    """Return what a file of a text accepts."""
    (folder / ACCEPTED).write_text(text, "utf-8")
    return read_accepted(folder)


def test_an_accepted_error_is_a_warning_that_says_why(tmp_path: Path) -> None:
    accepted = accepted_of(tmp_path, ENTRY)
    found = accepted.judged(ROUTE.problem(FILE, "It breaks."))
    assert found.severity is Severity.WARNING
    assert found.message == "It breaks. Accepted: finding 1"
    assert [*accepted.unused()] == []


@pytest.mark.parametrize(
    ("rule", "file"),
    [(NAMES, FILE), (ROUTE, FILE.replace("k4", "k5")), (ROUTE, "gemm_n8_k4.txt")],
)
def test_no_other_error_is_accepted(tmp_path: Path, rule: Any, file: str) -> None:
    accepted = accepted_of(tmp_path, ENTRY)
    problem = rule.problem(file, "It breaks.")
    assert accepted.judged(problem) == problem
    (unused,) = accepted.unused()
    assert unused.message == "'gemm_n8_k4' has no error route-interface."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[accepted]", "Expected"),
        ("a = 1", "The file has tables [[accepted]], and nothing else."),
        (ENTRY.replace('reason = "finding 1"\n', ""), "Entry 1: it has rule, reason"),
        (ENTRY.replace("finding 1", " "), "Entry 1: the reason is empty."),
        (
            ENTRY.replace("route-interface", "name-token"),
            "Entry 1: name-token can't be",
        ),
        (ENTRY.replace('["gemm_n8_k4"]', "[1]"), "Entry 1: definitions is an array"),
        (ENTRY + ENTRY, "Entry 2: gemm_n8_k4 is accepted twice."),
    ],
)
def test_a_file_that_is_wrong_accepts_nothing(
    tmp_path: Path, text: str, why: str
) -> None:
    accepted = accepted_of(tmp_path, text)
    (problem,) = accepted.problems
    assert (problem.rule, problem.file) == ("accepted-file", ACCEPTED)
    assert why in problem.message
    assert accepted.judged(ROUTE.problem(FILE, "It breaks.")).severity is Severity.ERROR


def test_validate_reads_it_and_says_what_is_unused(dataset: Any) -> None:
    dataset.write(ACCEPTED, ENTRY)
    (problem,) = dataset.problems()
    assert (problem.rule, problem.file) == ("accepted-unused", ACCEPTED)
    dataset.write(ACCEPTED, "[[accepted]]\n")
    (problem,) = dataset.problems()
    assert problem.rule == "accepted-file"


def test_this_dataset_has_no_error_of_routes_that_is_not_accepted() -> None:
    routes = [p for p in validate(ROOT) if p.rule.startswith(("route-", "accepted-"))]
    assert [str(p) for p in routes if p.severity is Severity.ERROR] == []
    accepted = [p for p in routes if p.rule == "route-interface"]
    assert accepted
    assert all("Accepted: docs/" in p.message for p in accepted)
    assert not [p for p in routes if p.rule.startswith("accepted-")]
