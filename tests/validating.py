"""Validate a dataset in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from generator.problems import Problem
from generator.validation.validate import Counts, make_plan, run_plan


def validate(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> tuple[Problem, ...]:
    """Return the Problems of the dataset at `root`, all of it or what is selected."""
    plan = make_plan(root, op_types=op_types, names=names)
    return tuple(run_plan(plan, Counts()))
