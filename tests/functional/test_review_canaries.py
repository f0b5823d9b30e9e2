"""Hostile references that the screen let through: their canaries give them away."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from generator.execution import sandbox
from generator.review import execute
from generator.review.account import Account
from generator.review.change import Change
from generator.rules.load import load_definitions
from tests.functional.reviewed import changed, make

WRONG = "def run(A, B):\n{trick}\n    return A @ B.T * 2\n"
PATCHES_COMPARE = """
from reference_support.kernel_judge.comparison import compare
from reference_support.kernel_judge.checks import pairs

def agree(actual, expected, tolerance, **rest):
    return compare.Comparison("PASSED", (), tolerance)

pairs.compare = agree
"""
PATCHES_TORCH = """
import torch
from reference_support.kernel_judge.comparison import compare, metrics

def measure(actual, expected, *rest, measured=metrics.measure, **more):
    return measured(expected, expected, *rest, **more)

torch.isclose = lambda a, *rest, **more: torch.ones_like(a, dtype=torch.bool)
torch.allclose = torch.equal = lambda *rest, **more: True
compare.measure = measure
"""
PATCHES_REPORTS = """
from _pytest.reports import TestReport
made = TestReport.from_item_and_call.__func__

def passed(cls, item, call):
    report = made(cls, item, call)
    if report.outcome == "failed":
        report.outcome, report.longrepr = "passed", None
    return report

TestReport.from_item_and_call = classmethod(passed)
"""
# by the name of the directory that pytest was started in
REWRITES_AT_THE_END = """
import atexit, os

def rewrite():
    text = open("results.jsonl").read()
    for bad in ("failed", "error"):
        text = text.replace(f'"status": "{bad}"', '"status": "passed"')
    open("results.jsonl", "w").write(text)
    os._exit(0)

atexit.register(rewrite)
"""
LEAVES_A_FORGED_FILE = """
import json, os, pytest, sys

frame = sys._getframe()
while not isinstance(frame.f_locals.get("session"), pytest.Session):
    frame = frame.f_back
session = frame.f_locals["session"]
lines = [{"format": 1, "date": "2026-11-21", "machine": {}}]
lines += [
    {
        "test": f"{i.cls.__name__}::{i.name}",
        "definition": "gemm_n8_k4",
        "sha256": "",
        "status": "passed",
        "message": "",
        "seconds": 0.1,
        "skip_kind": "",
        "comparisons": [],
    }
    for i in session.items
]
text = "".join(json.dumps(line) + chr(10) for line in lines)
open("results.jsonl", "w").write(text)
os._exit(0)
"""
TRICKS = {
    "patches-compare": PATCHES_COMPARE,
    "patches-torch": PATCHES_TORCH,
    "patches-reports": PATCHES_REPORTS,
    "rewrites-at-the-end": REWRITES_AT_THE_END,
    "leaves-a-forged-file": LEAVES_A_FORGED_FILE,
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a dataset whose references no screen looks at."""
    reason = sandbox.refusal()
    if reason is not None:
        pytest.skip(reason)
    make(tmp_path)
    monkeypatch.setattr(execute, "screen", lambda source: ())
    return tmp_path


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_a_trick_is_not_believed(
    root: Path, monkeypatch: pytest.MonkeyPatch, trick: str
) -> None:
    asked: list[Any] = []
    judge = execute.account

    def account(*given: Any) -> Account:
        asked.append(given)
        return judge(*given)

    monkeypatch.setattr(execute, "account", account)
    changed(root, reference=WRONG.format(trick=indent(trick, "    ")))
    definition = load_definitions(root, names=["gemm_n8_k4"]).definitions[0]
    key = ("gemm", "gemm_n8_k4")
    change = Change("changed", key, "", "", None, definition, (), None)
    executed = execute.execute_changes([change], root, "cpu", trust=False)
    assert executed is not None
    assert any("must fail and did not" in p for p in executed.problems), executed
    assert executed.compared == ()
    # without canaries the same report would be believed: it is they that find it
    ((outcome, expected, reported, canaries),) = asked
    others = [pair for pair in reported if pair[0] not in canaries]
    assert not judge(outcome, expected, others).problems
