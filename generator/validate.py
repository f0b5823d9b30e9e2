"""Validate a dataset: its definitions and their workloads, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from generator.constants import resolve_constants
from generator.definition import Definition
from generator.load import load_definitions
from generator.ops import OPS
from generator.problems import Problem, Severity
from generator.workloads import check_workloads


@dataclass(frozen=True)
class Validation:
    """Hold what a validation found, and how many things it looked at.

    `definitions` counts files and `workloads` lines, whether they were right or not.
    """

    problems: tuple[Problem, ...]
    definitions: int
    workloads: int

    def count(self, severity: Severity) -> int:
        """Return the number of problems of one severity."""
        return sum(problem.severity is severity for problem in self.problems)


def validate(
    root: Path, *, op_types: Sequence[str] = (), names: Sequence[str] = ()
) -> Validation:
    """Validate the dataset at `root`, all of it or what is selected.

    Raises UnknownName for an op_type or a name that the dataset does not have.
    """
    loaded = load_definitions(root, op_types=op_types, names=names)
    if not loaded.files:
        return Validation(loaded.problems, 0, 0)
    workloads = check_workloads(root, loaded)
    constants = [p for d in loaded.definitions for p in _constants(d)]
    found = [*loaded.problems, *constants, *workloads.problems]
    problems = tuple(sorted(found, key=lambda p: p.file))
    return Validation(problems, len(loaded.files), workloads.count)


def _constants(definition: Definition) -> list[Problem]:
    spec = OPS.get(definition.op_type)
    return [] if spec is None else resolve_constants(definition, spec)[1]
