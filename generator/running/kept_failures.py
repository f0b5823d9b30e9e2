"""`--keep-failures DIR`: of each test that fails what is known of it, and its values.

`trace-dataset replay` takes the JSON file and runs that one test again.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from generator.dataset.failure_file import FAILURE, write_failure
from generator.running.described import described, first_finding
from generator.running.harness import ReferenceTests
from kernel_judge.checked import Checked
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.trial import Trial

MOST = 8
"""Tests of a definition whose files are kept."""


class KeptFailures:
    """The files of each test that fails, and how to run it again, for its report."""

    def __init__(self, folder: Path) -> None:
        # a test may change the working directory
        self._folder = folder.resolve()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"--keep-failures {folder}: {error.strerror}"
            raise pytest.UsageError(reason) from error

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep what failed in its call: setup and teardown have no values."""
        report = yield
        tests = getattr(item, "instance", None)
        if report.failed and report.when == "call" and call.excinfo is not None:
            trial = _trial_of(item)
            if isinstance(tests, ReferenceTests) and trial is not None:
                path = self._keep(item, tests, trial, call.excinfo.value)
                report.sections.append(("failure", f"trace-dataset replay {path}"))
        return report

    def _keep(
        self,
        item: pytest.Item,
        tests: ReferenceTests,
        trial: Trial,
        error: BaseException,
    ) -> str:
        test = item.nodeid.partition("::")[2]
        of_definition = self._folder / tests.name
        name = re.sub(r"[^\w.-]+", "-", test.partition("::")[2])[:120].strip("-.")
        folder = of_definition / name
        if of_definition.is_dir() and len(list(of_definition.iterdir())) >= MOST:
            return f"(no file: {MOST} of {tests.name} are there already)"
        checked = tests.checked
        values = {
            f"inputs.{name}": fresh(value, trial.device)
            for name, value in trial.inputs.items()
        }
        outputs = _outputs(tests, checked, values)
        defect = checked.defect if checked is not None else None
        is_check = defect is not None
        shown = shlex.quote(str(folder / FAILURE))
        about = {
            "kind": "test",
            "definition": tests.name,
            "op_type": tests.op_type,
            "sha256": tests.sha256,
            "test": test,
            "case": trial.case.name,
            "axes": dict(trial.case.axes),
            "device": trial.device.type,
            "seed": trial.shift,
            "tolerance": tests.run_tolerance,
            "verdict": "FAILED" if is_check else "ERROR",
            "reason": first_finding(defect or f"{type(error).__name__}: {error}"),
            "outputs": outputs,
            "next": f"trace-dataset replay {shown}",
        }
        write_failure(folder, about, values)
        return shown


def _trial_of(item: pytest.Item) -> Trial | None:
    funcargs: Mapping[str, Any] = getattr(item, "funcargs", {})
    trial = funcargs.get("trial", funcargs.get("related"))
    return trial if isinstance(trial, Trial) else None


def _outputs(
    tests: ReferenceTests, checked: Checked | None, values: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return where each output is wrong, and add both its values."""
    wrong = []
    for one in () if checked is None else checked.comparisons:
        if one.values is None:
            continue
        actual, expected = one.values
        spec = tests.interface.output_specs.get(one.output)
        axes = None if spec is None else spec.shape
        # of a recording only some elements are there, one after the other
        if axes is None or getattr(actual, "ndim", -1) != len(axes):
            axes = None
        wrong.append(
            {
                "source": one.source,
                "rows_left_out": one.record.get("rows_left_out", 0),
                **described(one.output, axes, actual, expected, one.comparison),
            }
        )
        values.setdefault(f"actual.{one.output}", actual)
        values.setdefault(f"expected.{one.output}", expected)
    return wrong
