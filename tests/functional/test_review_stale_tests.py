"""`trace-dataset review` of definitions whose rendered tests the change leaves as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.functional.hostile import write
from tests.functional.reviewed import (
    REFERENCE,
    answers,
    axes,
    changed,
    commit,
    evidence,
    git,
    render,
    reviewed,
)
from tests.functional.test_validate import DEFINITION, FILE

APPROVE, CHANGES = 0, 1
POINT = "reference test rendered from this text"


@pytest.fixture
def tested(root: Path) -> Path:
    """Return a dataset with rendered tests, whose definition a GPU compared."""
    evidence(root)
    render(root)
    commit(root)
    return root


@pytest.mark.parametrize(
    "fields",
    [{"description": "In other words."}, {"tags": ["stage:decode"]}],
    ids=["description", "tag"],
)
def test_what_is_printed_there_has_to_be_rendered_again(
    tested: Path, fields: dict[str, Any]
) -> None:
    changed(tested, **fields)
    found = reviewed(tested, "--base", "HEAD", "--trust-evidence", status=CHANGES)
    assert answers(found)[POINT] == "no"
    (reason,) = found["reasons"]
    assert "an earlier description or tag: gen-tests --op-type gemm" in reason
    render(tested)
    found = reviewed(tested, "--base", "HEAD", "--trust-evidence", status=APPROVE)
    assert answers(found)[POINT] == "yes"


def test_what_is_not_printed_there_leaves_it_as_it_is(tested: Path) -> None:
    (tested / FILE).write_text(json.dumps(DEFINITION, indent=8), "utf-8")
    assert git(tested, "diff", "--name-only") == FILE
    found = reviewed(tested, "--base", "HEAD", status=APPROVE)
    assert answers(found)[POINT] == "yes"


def test_another_text_is_told_by_its_hash(tested: Path) -> None:
    changed(tested, reference=REFERENCE.replace("A @ B.T", "(A @ B.T) * 1"))
    found = reviewed(tested, "--base", "HEAD", status=CHANGES)
    assert any("does not: gen-tests --op-type gemm" in r for r in found["reasons"])


def test_what_can_not_be_rendered_is_wrong_by_its_rules(tested: Path) -> None:
    (tested / FILE).write_text("{", "utf-8")
    found = reviewed(tested, "--base", "HEAD", status=CHANGES)
    assert any(problem["file"] == FILE for problem in found["problems"]["new"])


def test_tests_of_a_dataset_without_rendered_ones_are_its_own(root: Path) -> None:
    evidence(root)
    write(root, "tests/references/test_gemm.py", "def test_nothing(): assert True\n")
    commit(root)
    changed(root, description="In other words.")
    found = reviewed(root, "--base", "HEAD", status=APPROVE)
    assert answers(found)[POINT] == "yes"


def test_the_second_definition_of_a_file_counts_as_well(tested: Path) -> None:
    other = FILE.replace("n8", "n9")
    named = {**DEFINITION, "name": "gemm_n9_k4", "axes": axes(9)}
    write(tested, other, {**named, "description": "In other words."})
    found = reviewed(tested, "--base", "HEAD", "--trust-evidence")
    assert answers(found, "gemm_n9_k4")[POINT] == "no"
