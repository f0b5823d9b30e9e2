"""Reports of pytest that are made up."""

from __future__ import annotations

import json
from types import SimpleNamespace

from generator.running.evidence import FinishedTests


def report(
    function, *comparisons, outcome="passed", when="call", reason="", **properties
):
    """Return the report of a test's phase; the test is of definition `d` of rmsnorm."""
    known = {"definition": "d", "op_type": "rmsnorm", **properties}
    pairs = [*known.items(), *(("comparison", json.dumps(c)) for c in comparisons)]
    return SimpleNamespace(
        when=when,
        duration=0.5,
        nodeid=f"test_rmsnorm.py::TestD::{function}[case]",
        outcome=outcome,
        passed=outcome == "passed",
        failed=outcome == "failed",
        skipped=outcome == "skipped",
        longrepr=("file.py", 1, f"Skipped: {reason}") if reason else None,
        user_properties=pairs,
    )


def ended(found):
    """Return the reports of a test of which one phase is given: that and its end."""
    if found.when == "teardown":
        return (found,)
    end = vars(found) | {"when": "teardown", "passed": True}
    return found, SimpleNamespace(**end | {"failed": False, "skipped": False})


def finished(found):
    """Return the test that a report is of, as a line of the results has it."""
    tests = FinishedTests()
    *_, test = (tests.add(phase) for phase in ended(found))
    return test
