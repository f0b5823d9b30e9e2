"""Hostile scripts, run confined, and run without a sandbox to show that they can hurt."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.execution.sandbox import (
    CommandOutcome,
    Limits,
    refusal,
    run_confined,
    warnings,
)

Run = Callable[..., CommandOutcome]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("calls_are_filtered"):
        for reason in warnings():
            pytest.skip(reason)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "dataset"
    folder.mkdir()
    folder.joinpath("definition.json").write_text("{}")
    return folder


@pytest.fixture
def _confines() -> None:
    reason = refusal()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def hostile(dataset: Path, _confines: None) -> Run:
    """Run a script in the sandbox."""

    def run(
        script: str, *, limits: Limits | None = None, **rest: object
    ) -> CommandOutcome:
        return run_confined(
            [sys.executable, "-I", "-S", "-c", textwrap.dedent(script)],
            read_only=[dataset],
            limits=limits or Limits(wall_seconds=20),
            **rest,
        )

    return run


@pytest.fixture
def free(work: Path) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Run a script without a sandbox: what it does there must be seen to succeed."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", textwrap.dedent(script)],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )

    return run
