"""Canaries: tests beside those of a change that a sound judge turns red.

The reference runs in the process that judges it, and may patch the judge. So each test
class of a run has two canaries, one before all tests and one after: the same class,
with the same inputs, cases and comparisons, of which the outputs are wrong. One that
does not fail says that the others' passes are worth nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.rendering.plan import TestPlan

_HEAD = """

# ---- the canaries: each is one of the tests' classes, with wrong outputs

"""
_CLASS = '''

class {name}({module}.{of}):
    """{of}, which returns something else."""

    reference = staticmethod(wrong({module}.{of}.reference))
'''
# with their own failures pytest would say 1 whatever became of the tests
_CONFTEST = '''"""Leave the canaries in this folder out of the exit status."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.name
failed = []


def pytest_runtest_logreport(report):
    """Count the canaries that failed."""
    if report.failed and report.nodeid.startswith(f"{FOLDER}/"):
        failed.append(report.nodeid)


def pytest_sessionfinish(session):
    """Say that all is well where nothing but canaries failed."""
    only_canaries = session.testsfailed == len(failed)
    if session.exitstatus == pytest.ExitCode.TESTS_FAILED and only_canaries:
        session.exitstatus = pytest.ExitCode.OK
'''


@dataclass(frozen=True)
class Canaries:
    """Where the canaries are, and their ids with those of the tests that they copy."""

    file: Path
    before: Mapping[str, str]
    after: Mapping[str, str]

    def excused(self, reported: Sequence[tuple[str, str]]) -> frozenset[str]:
        """Return the canaries that were skipped as the tests were that they copy.

        A case that does not fit the memory, say: no pass comes of it.
        """
        results = dict(reported)
        return frozenset(
            canary
            for canary, test in {**self.before, **self.after}.items()
            if results.get(canary) == results.get(test) == "skipped"
        )

    def arguments(self, tests: Iterable[Path]) -> list[str]:
        """Return what pytest is to run, in this order."""
        return [
            *(f"{self.file}::{name}" for name in self.before),
            *(str(path) for path in tests),
            *(f"{self.file}::{name}" for name in self.after),
        ]


def plant(plans: Sequence[TestPlan], listed: Sequence[str], tests: Path) -> Canaries:
    """Write canaries beside rendered tests, under names that nobody can guess.

    `listed` are the ids of the tests, `TestX::test_y[case]`. A class without a listed
    test gets none. Raises OSError.
    """
    folder = tests / f"t{secrets.token_hex(8)}"
    folder.mkdir()
    file = folder / f"test_{secrets.token_hex(8)}.py"
    spoil = Path(__file__).with_name("corrupt_outputs.py").read_text("utf-8")
    modules = sorted(f"test_{plan.op_type}" for plan in plans)
    text = spoil.rstrip("\n") + _HEAD + "".join(f"import {m}\n" for m in modules)
    found: list[dict[str, str]] = [{}, {}]
    for canaries in found:
        for plan in plans:
            for planned in plan.classes:
                # the first test that wrong outputs turn red
                compares = plan.op is not None and planned.unresolved is None
                test = "test_matches_oracle" if compares else "test_contract"
                wanted = f"{planned.class_name}::{test}["
                test = next((name for name in listed if name.startswith(wanted)), "")
                if not test:
                    continue
                name = f"Test{secrets.token_hex(8)}"
                module = f"test_{plan.op_type}"
                text += _CLASS.format(name=name, module=module, of=planned.class_name)
                canaries[f"{name}::{test.partition('::')[2]}"] = test
    file.write_text(text, "utf-8")
    (folder / "conftest.py").write_text(_CONFTEST, "utf-8")
    return Canaries(file, *found)
