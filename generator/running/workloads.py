"""The workloads of a dataset's files as cases of the tests, and which are asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from generator.dataset.json_file import read_json_lines
from generator.running.workload_case import Fit, WorkloadCase, workload_case
from kernel_judge.definition import WORKLOAD, Case, Definition
from kernel_judge.inputs.memory import tensor_bytes
from kernel_judge.inputs.trial import MakeInputs
from kernel_judge.obstacle import Kind, Obstacle
from kernel_judge.subject import Subject

LIMITS_BYTES = 32 << 20
"""Bytes of inputs and outputs of a case of limits that a CPU is asked for by default."""
CPU_BYTES = 64 << 20
"""Bytes of inputs and outputs of a workload that a CPU is asked for by default."""


def workload_cases(
    dataset: Path, definition: Definition, cases: Sequence[Case], of_op: MakeInputs
) -> tuple[list[WorkloadCase], str]:
    """Return a definition's workloads, the smallest first, and what is wrong with the file.

    `cases` and `of_op` are the op's own. A dataset without the file has none.
    """
    path = f"workloads/{definition.op_type}/{definition.name}.jsonl"
    if not (dataset / path).is_file():
        return [], ""
    lines = read_json_lines(dataset, path)
    if lines.problems:
        return [], f"{path}: {lines.problems[0].message}"
    sized = []
    for number, line in lines.lines:
        try:
            made = workload_case(line["workload"], dataset, definition, cases, of_op)
            sized.append((tensor_bytes(definition, made), number, made))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            return [], f"{path} line {number} is no workload of it ({what})"
    return [case for _, _, case in sorted(sized, key=lambda f: f[:2])], ""


@dataclass(frozen=True)
class Workloads:
    """The workloads of a dataset's folder: `none`, those that `fit`, or `all`.

    `fit` changes what their files state, for axes that are shorter than theirs.
    """

    dataset: Path | None
    chosen: str
    fit: Fit | None = None
    # by definition: each of a class's tests asks
    _known: dict[str, list[Case]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def of(self, subject: Subject) -> list[Case]:
        """Return the workloads of a definition. Raises ValueError with a line."""
        if self.dataset is None or self.chosen == "none":
            return []
        if subject.name not in self._known:
            self._known[subject.name] = self._read(self.dataset, subject)
        return [*self._known[subject.name]]

    def _read(self, dataset: Path, subject: Subject) -> list[Case]:
        definition, op = subject.definition, subject.op
        cases_of_op = op.cases(definition)
        cases, wrong = workload_cases(dataset, definition, cases_of_op, op.make_inputs)
        if wrong:
            raise ValueError(wrong)
        return [replace(case, fit=self.fit) for case in cases]


NO_WORKLOADS = Workloads(None, "none")


class TooLong:
    """The workloads that took too long: those that are larger would as well."""

    def __init__(self) -> None:
        self._cases: dict[str, list[tuple[int, Case]]] = {}

    def add(self, definition: Definition, case: Case) -> None:
        """Remember a workload that was given up."""
        size = tensor_bytes(definition, case)
        self._cases.setdefault(definition.name, []).append((size, case))

    def obstacle(self, definition: Definition, case: Case) -> Obstacle | None:
        """Return why a workload is not asked: another, larger in nothing, took too long."""
        size = tensor_bytes(definition, case)
        for least, other in self._cases.get(definition.name, ()):
            is_larger = all(case.axes[name] >= n for name, n in other.axes.items())
            if is_larger and size >= least:
                what = f"{other.name}, which is no larger, took too long of the CPU"
                return Obstacle(Kind.TOO_LONG, f"{what}: --workloads all asks for both")
        return None


def why_not_asked(
    definition: Definition, case: Case, device: torch.device
) -> Obstacle | None:
    """Return why a case is not asked by default: it is for a GPU, by its bytes.

    That is of workloads, and of the cases that cross limits.
    """
    size = tensor_bytes(definition, case)
    most = CPU_BYTES if case.size == WORKLOAD else LIMITS_BYTES
    if device.type != "cpu" or size <= most:
        return None
    return Obstacle(Kind.NEEDS_MEMORY, f"{size / 2**20:.0f} MiB are for a GPU")
