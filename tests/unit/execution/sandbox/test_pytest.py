"""What honest references need works inside, and what hostile ones report is found."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from generator.execution.sandbox import (
    CommandOutcome,
    Limits,
    read_result,
    run_confined,
)
from generator.review.account import account

TESTS = """
import torch

{hostile}

def test_small():
    assert torch.allclose(torch.ones(3) @ torch.ones(3, 3), torch.full((3,), 3.0))

def test_threads():
    x = torch.randn(512, 512)
    assert torch.isfinite(x @ x).all()

def test_canary():
    assert torch.allclose(torch.zeros(1), torch.ones(1))
"""
EXPECTED = ("test_small", "test_threads")


def run(work: Path, hostile: str = "") -> CommandOutcome:
    test = work / "test_it.py"
    test.write_text(TESTS.format(hostile=hostile))
    return run_confined(
        [sys.executable, "-m", "pytest", "-q", "--junitxml=junit.xml", str(test)],
        read_only=[work],
        results=work / "junit.xml",
        limits=Limits(wall_seconds=60),
        environment={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )


def reported(work: Path) -> list[tuple[str, str]]:
    text = read_result(work / "junit.xml")
    cases = ET.fromstring(text).iter("testcase") if text else ()
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    return [
        (
            case.get("name", ""),
            next((words[c.tag] for c in case if c.tag in words), "passed"),
        )
        for case in cases
    ]


def test_torch_and_pytest_work_inside(work) -> None:
    # pytest says 1 of the canary, which a review leaves out of the status
    outcome = replace(run(work), exit_status=0)
    found = account(outcome, EXPECTED, reported(work), {"test_canary": "test_small"})
    assert found.problems == (), outcome
    assert found.passed == EXPECTED


@pytest.mark.parametrize(
    "trick",
    [
        "torch.allclose = lambda *a, **k: True",
        "import os; print('3 passed'); os._exit(0)",
        "import pytest; pytest.skip(allow_module_level=True)",
        "import sys; sys.exit(0)",
    ],
    ids=["patch", "exit", "skip", "system-exit"],
)
def test_a_trick_is_found_by_the_account(work, trick) -> None:
    outcome = replace(run(work, trick), exit_status=0)
    assert account(
        outcome, EXPECTED, reported(work), {"test_canary": "test_small"}
    ).problems
