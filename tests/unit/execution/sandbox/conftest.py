"""Hostile scripts, run confined; a test names the layers that it is about."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from generator.execution.sandbox import Limits, Outcome, layers, run_confined

Run = Callable[..., Outcome]


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
def hostile(work: Path, dataset: Path) -> Run:
    """Run a script confined by all layers, or by `only` some; skips what is missing."""

    def run(
        script: str,
        *,
        only: Collection[str] | None = None,
        limits: Limits | None = None,
        **rest: object,
    ) -> Outcome:
        there = layers()
        for layer in there:
            if only is not None and layer.name in only and not layer.active:
                pytest.skip(f"no {layer.name}: {layer.detail}")
        left_out = [
            layer.name for layer in there if only is not None and layer.name not in only
        ]
        return run_confined(
            [sys.executable, "-I", "-S", "-c", textwrap.dedent(script)],
            read_only=[dataset],
            work=work,
            limits=limits or Limits(wall_seconds=20),
            without=left_out,
            **rest,
        )

    return run
