"""Pose planted defects to a checker as it poses solutions; keep those that pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.evaluation.checkers.checker import Checker
from generator.evaluation.rounds import Round
from generator.execution.process_limits import TimeIsUp, time_limit
from generator.ops.domain_mutants import domain_mutants
from generator.ops.geometry import reduced
from generator.ops.mutants import DomainMutant
from generator.problems.messages import one_line
from generator.rules.subjects import subject_of
from generator.running.workload_case import workload_case
from kernel_judge.definition import Case
from kernel_judge.inputs.memory import dtype_of, tensor_bytes
from kernel_judge.inputs.trial import as_tuple, seed
from kernel_judge.reference import load_run
from kernel_judge.subject import Subject

Run = Callable[..., Any]
Inputs = dict[str, Any]
_CPU = torch.device("cpu")
_MOST_BYTES, _USUAL_BYTES = 64 << 20, 16 << 20
_SIZES = 3
_SEED, _SECONDS = 42, 60.0


@dataclass(frozen=True)
class PosedRounds:
    """Mutants that pass a checker in all of its rounds; `why`: the reason for none."""

    rounds: int = 0
    passes: Sequence[str] = ()
    why: str = ""


@dataclass(frozen=True)
class Planted:
    """A definition with its reference and the defects that are planted in it.

    `axes` are those that are shorter than declared: its workloads are too large.
    """

    definition: LoadedDefinition
    subject: Subject
    run: Run
    defects: Sequence[DomainMutant]
    workloads: Sequence[Mapping[str, Any]]
    dataset: Path
    axes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        definition: LoadedDefinition,
        workloads: Sequence[Mapping[str, Any]],
        dataset: Path,
    ) -> Planted:
        """Plant the defects: on shorter axes where no workload fits."""
        subject, axes = subject_of(definition), dict[str, int]()
        chosen = _chosen(subject, workloads)
        if not chosen:
            axes = reduced(definition.op_type, definition.const_axes)
            subject = subject_of(definition, axes)
            chosen = _chosen(subject, workloads)
        run = load_run(definition.reference)
        defects = domain_mutants(subject.definition)
        return cls(definition, subject, run, defects, chosen, dataset, axes)

    def round_of(self, workload: Mapping[str, Any]) -> Round:
        """Return a round of a workload, whose inputs of integers are valid ones."""
        known, op = self.subject.definition, self.subject.op
        cases = op.cases(known)
        case = workload_case(workload, self.dataset, known, cases, op.make_inputs)
        return Round(self.subject.with_run(self.run), case, 0, _CPU, workload)

    def by_name(self) -> dict[str, Run]:
        """Return name → `run()` with that defect; each keeps its own state."""
        return {defect.name: defect.wrap(self.run) for defect in self.defects}


def judged(planted: Planted, checker: Checker) -> PosedRounds:
    """Return which defects pass a checker's rule in all rounds of all workloads."""
    known = planted.subject.definition
    why = checker.obstacle(known)
    if not why and not planted.workloads:
        why = f"no workload of up to {_MOST_BYTES >> 20} MiB"
    if why:
        return PosedRounds(why=why)
    right = checker.formula(known)
    left, rounds = planted.by_name(), 0
    for inputs in _inputs(planted, checker):
        try:
            expected = called(planted.run, inputs)
        except Exception as error:  # noqa: BLE001 - of values that it does not expect
            message = one_line(f"{type(error).__name__}: {error}", 120)
            return PosedRounds(why=f"the reference raises on its inputs: {message}")
        if not expected:
            return PosedRounds(why="it compares what is returned, and nothing is")
        if not right(expected, expected):
            return PosedRounds(why="it refuses the reference's own answer")
        left = {
            n: run for n, run in left.items() if _passes(run, inputs, expected, right)
        }
        rounds += 1
    return PosedRounds(rounds, tuple(left))


def called(run: Run, inputs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the outputs of a call on copies of the inputs, as other checkers call."""
    copies = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs.values()]
    seed(_SEED)
    with torch.no_grad():
        return tuple(value for value in as_tuple(run(*copies)) if value is not None)


def _passes(
    run: Run, inputs: Inputs, expected: Sequence[Any], right: Callable[..., bool]
) -> bool:
    try:
        with time_limit(_SECONDS):
            return right(called(run, inputs), expected)
    except (Exception, TimeIsUp):  # noqa: BLE001 - whatever a defect raises is refused
        return False


def _inputs(planted: Planted, checker: Checker) -> Iterator[Inputs]:
    """Yield the inputs of each round: what a workload leaves open is the checker's."""
    random = torch.Generator().manual_seed(_SEED)
    interface = planted.subject.interface
    precision = next(dtype_of(s.dtype) for s in interface.output_specs.values())
    for workload in planted.workloads:
        base = planted.round_of(workload).inputs
        is_open = {
            n for n, entry in workload["inputs"].items() if entry["type"] == "random"
        }
        for _ in range(checker.rounds):
            inputs = dict(base)
            for name, value in base.items():
                if name not in is_open or not isinstance(value, torch.Tensor):
                    continue
                drawn = checker.draw(name, tuple(value.shape), value.dtype, random)
                inputs[name] = value if drawn is None else drawn
            if checker.casts:
                inputs = {
                    n: v.to(precision) if isinstance(v, torch.Tensor) else v
                    for n, v in inputs.items()
                }
            yield inputs


def _chosen(
    subject: Subject, workloads: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return a small, a middle and a large one of the workloads that a CPU poses soon.

    Where none is so small, return the smallest, if it can be posed at all.
    """
    known = subject.definition

    def size(workload: Mapping[str, Any]) -> int:
        return tensor_bytes(known, Case("workload", "medium", workload["axes"]))

    fit = sorted((w for w in workloads if size(w) <= _MOST_BYTES), key=size)
    usual = [w for w in fit if size(w) <= _USUAL_BYTES] or fit[:1]
    return (
        usual if len(usual) <= _SIZES else [usual[0], usual[len(usual) // 2], usual[-1]]
    )
