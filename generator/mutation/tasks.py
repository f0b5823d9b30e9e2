"""The tasks of an audit on a definition: mutants, seeds, or what tolerances need.

Their functions are in `task_functions`, which imports torch.
"""

from __future__ import annotations

from pathlib import Path

from generator.dataset.paths import RECORDINGS, DatasetFile
from generator.execution.definition_task import DefinitionTask
from generator.execution.outcome import Outcome
from generator.mutation.mutants_result import DefinitionResult
from generator.mutation.seeds_result import Alarm, SeedsResult
from generator.mutation.tolerances.result import Floors
from generator.ops.registry import other_files

_FUNCTIONS = "generator.mutation.task_functions"
# seconds to make the inputs, the random cases for one mutant, or a case with one seed
_TIMEOUT = 300.0
# for all cases of a definition: there is no sign of life before the end
_MEASURING = 900.0


def audit_task(
    dataset: Path, tolerance: float | None = None, *, limits: bool = False
) -> DefinitionTask[DefinitionResult]:
    """Return the task that runs mutants; `tolerance` replaces every atol and rtol.

    `limits` adds those that are right up to a limit which a workload crosses.
    """

    def failed(file: DatasetFile, outcome: Outcome) -> DefinitionResult:
        return DefinitionResult(file.name, file.op_type, "", error=outcome.why)

    arguments = {"tolerance": tolerance, "limits": limits}
    work = f"{_FUNCTIONS}:audit"
    read = DefinitionResult.from_dict
    reads = (
        f"{RECORDINGS}/{{op_type}}/{{name}}.safetensors",
        "workloads/{op_type}/{name}.jsonl",
    )
    parts = ("definitions", str(RECORDINGS), "workloads", "blob/workloads")
    how = (dataset, arguments, reads, read, failed, parts, other_files())
    return DefinitionTask(work, _TIMEOUT, *how)


def seeds_task(
    dataset: Path, first: int, last: int, whole: bool = False
) -> DefinitionTask[SeedsResult]:
    """Return the task that runs the tests of unchanged references with some seeds.

    `whole` shortens no axis.
    """

    def failed(file: DatasetFile, outcome: Outcome) -> SeedsResult:
        alarms_sent = list(outcome.said)
        while None in alarms_sent:
            # from there on with other axes
            alarms_sent = alarms_sent[alarms_sent.index(None) + 1 :]
        alarms = tuple(Alarm(**alarm) for alarm in alarms_sent)
        seeds = (first, last)
        return SeedsResult(
            file.name, file.op_type, "", seeds, alarms=alarms, error=outcome.why
        )

    arguments = {"seeds": (first, last), "whole": whole}
    work = f"{_FUNCTIONS}:run_seeds"
    read = SeedsResult.from_dict
    # relations compare a reference with others of its folder
    reads = ("definitions/{op_type}/*.json",)
    how = (dataset, arguments, reads, read, failed)
    return DefinitionTask(work, _TIMEOUT, *how, others=other_files())


def tolerance_task(dataset: Path, tolerance: float | None) -> DefinitionTask[Floors]:
    """Return the task that measures errors; `tolerance` replaces every atol and rtol."""

    def failed(file: DatasetFile, outcome: Outcome) -> Floors:
        return Floors(file.name, file.op_type, file.path, error=outcome.why)

    arguments = {"tolerance": tolerance}
    work = f"{_FUNCTIONS}:measure_tolerances"
    read = Floors.from_dict
    return DefinitionTask(work, _MEASURING, dataset, arguments, None, read, failed)
