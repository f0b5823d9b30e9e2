"""The rendered folders and the runs that several tests look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.datasets import TWICE, decode, faulty, norm, prefill
from tests.harness.runs import Run, render, run_pytest


@pytest.fixture(scope="session")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rendered tests of definitions in which all is right."""
    root = tmp_path_factory.mktemp("right")
    return render(root, [norm(), decode(), prefill()])


@pytest.fixture(scope="session")
def green(right: Path) -> Run:
    """Return a strict run of these, spread over two processes."""
    return run_pytest(right, "--strict", "-n", "2", "--device", "cpu", "-rs")


@pytest.fixture(scope="session")
def unknown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the rendered tests of an op_type without a module."""
    return render(tmp_path_factory.mktemp("unknown"), [TWICE])


@pytest.fixture(scope="session")
def red(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return the run over the planted faults."""
    folder = render(tmp_path_factory.mktemp("faulty"), faulty())
    return run_pytest(folder, "--device", "cpu", "--sizes", "small")
