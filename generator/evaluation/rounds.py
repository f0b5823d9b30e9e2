"""The calls of an evaluation: cases, workloads and random draws, with secret values.

A round is one set of values of one case. The judge makes its inputs and expected outputs
once and asks every solution for it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from generator.dataset.definition import LoadedDefinition
from generator.evaluation.drawn_lengths import (
    drawn_lengths,
    past_limits,
    varied_anyway,
)
from generator.evaluation.draws import SECRETS, draws_of
from generator.evaluation.far_sizes import far_sizes
from generator.evaluation.neighbours import neighbours
from generator.evaluation.room import where_room
from generator.evaluation.solution_tolerance import REFERENCE
from generator.ops.registry import optional_op_module
from generator.ops.variation import varied
from generator.rules.subjects import subject_of
from generator.running.free_memory import shortage
from generator.running.workload_case import WorkloadCase, workload_case
from generator.running.workloads import why_not_asked
from kernel_judge.checks.pairs import ORACLE
from kernel_judge.comparison.policy import Repeating
from kernel_judge.definition import LIMITS, WORKLOAD, Case, Definition
from kernel_judge.inputs.lazy_weights import lazy
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from kernel_judge.inputs.repeated import repeated, repeated_inputs, shortened
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.inputs.trial import Inputs, Trial, as_tuple
from kernel_judge.skipping import Skip
from kernel_judge.source_names import METAMORPHIC
from kernel_judge.subject import Subject

_KEPT_BYTES = 64 << 20
_AGAIN = 0.25


@dataclass
class Round:
    """One set of values of a case.

    `shift` is the secret seed that makes the values. `workload` is the dataset's, whose
    own inputs replace what the op's functions make; `values` replaces all of them.
    `gains` has the power of two by which each output is larger than usual, in order.
    """

    subject: Subject
    case: Case
    shift: int
    device: torch.device
    workload: Mapping[str, Any] | None = None
    values: Inputs | None = None
    gains: tuple[float, ...] = ()
    _held: Inputs | None = field(default=None, init=False)

    @cached_property
    def trial(self) -> Trial:
        """Return the trial that makes the inputs."""
        return self.subject.trial(
            self.case,
            self.device,
            make_inputs=self.make_inputs,
            shift=self.shift,
        )

    @cached_property
    def inputs(self) -> Inputs:
        """Return the inputs as tensors on the CPU; nobody writes to these."""
        cpu = torch.device("cpu")
        return {
            name: value.tensor(cpu) if hasattr(value, "same_bits") else value
            for name, value in self.trial.inputs.items()
        }

    @cached_property
    def source(self) -> str:
        """Return what is expected: the oracle's answer, or the reference's."""
        subject = self.subject
        has_oracle = subject.op.oracle is not None and subject.unresolved is None
        return ORACLE if has_oracle else REFERENCE

    @cached_property
    def filled(self) -> tuple[str, ...]:
        """Return the names of the inputs that `run()` is to fill."""
        return self.subject.filled(self.inputs)

    @cached_property
    def expected(self) -> tuple[Any, ...]:
        """Return what is expected, inputs to be filled after the outputs.

        What is kept is on the CPU; what is not stays where it was computed.
        """
        if self.case.repeats:
            outputs = where_room(self._repeated, self.device)
        elif self.source == ORACLE:
            outputs = where_room(self._of_oracle, self.device)
        else:
            after = tuple(self.trial.after(name) for name in self.filled)
            outputs = self.trial.outputs + after
        if not self._is_kept:
            return outputs
        return tuple(v.cpu() if isinstance(v, torch.Tensor) else v for v in outputs)

    def _of_oracle(self, place: torch.device) -> tuple[Any, ...]:
        """Return what the oracle computes on a device."""
        oracle, trial = self.subject.op.oracle, self.trial
        assert oracle is not None
        inputs = {name: lazy(value, place) for name, value in trial.inputs.items()}
        return as_tuple(oracle(trial.definition, inputs))

    def _repeated(self, place: torch.device) -> tuple[Any, ...]:
        """Return what is expected of slices that repeat, from that of the distinct ones."""
        few = [
            v.to(place) if isinstance(v, torch.Tensor) else v
            for v in self.distinct.expected
        ]
        specs = self.subject.interface.output_specs
        names = [*specs, *self.filled]
        every = {**self.subject.interface.input_specs, **specs}
        outputs = repeated(dict(zip(names, few, strict=True)), every, self.case)
        return tuple(outputs.values())

    @cached_property
    def distinct(self) -> Round:
        """Return the round of the slices that are distinct, where others repeat them."""
        return replace(self, case=shortened(self.case))

    @property
    def _is_kept(self) -> bool:
        return tensor_bytes(self.subject.definition, self.case) <= _KEPT_BYTES

    def drop(self) -> None:
        """Forget values that are too large to be kept for the next solution."""
        if not self._is_kept:
            for name in ("trial", "inputs", "expected", "distinct"):
                self.__dict__.pop(name, None)

    def hold(self) -> None:
        """Draw the values, and keep them for who asks again, however large they are."""
        self._held = self.inputs

    def release(self) -> None:
        """Keep values no longer than others of their size are."""
        self._held = None
        self.drop()

    def calls(self) -> int:
        """Return how often to call for one verdict: for a law, many times."""
        wanted = [1]
        axes = {**self.subject.definition.axes, **self.case.axes}
        for name, spec in self.subject.interface.output_specs.items():
            policy = self.subject.op.policies.get(name)
            if isinstance(policy, Repeating):
                empty = torch.empty(shape_of(spec, axes), dtype=dtype_of(spec.dtype))
                wanted.append(policy.calls(empty, self.case))
        return max(wanted)

    def make_inputs(self, definition: Definition, case: Case, stream: Stream) -> Inputs:
        """Return the op's inputs, or those that the workload has."""
        if self.values is not None:
            return self.values
        if self._held is not None:
            return self._held
        maker = getattr(case, "make_inputs", None) or self.subject.op.make_inputs
        return repeated_inputs(maker, definition, case, stream)


@dataclass(frozen=True)
class EvaluationRounds:
    """The rounds of a definition, what was left out and why, and the relations."""

    subject: Subject
    rounds: Sequence[tuple[str, Sequence[Round]]]
    relations: Sequence[tuple[Any, Round]]
    left_out: Sequence[str]

    def names(self) -> list[str]:
        """Return the names by which `of_case` knows the cases and the relations."""
        related = [
            relation_name(relation, one.case) for relation, one in self.relations
        ]
        return [case for case, _ in self.rounds] + related

    def of_case(self, name: str) -> EvaluationRounds:
        """Return what is asked of one case, or one relation, alone."""
        return EvaluationRounds(
            self.subject,
            [(case, rounds) for case, rounds in self.rounds if case == name],
            [
                (r, one)
                for r, one in self.relations
                if relation_name(r, one.case) == name
            ],
            self.left_out,
        )


def rounds_of(
    definition: LoadedDefinition,
    workloads: Sequence[Mapping[str, Any]],
    dataset: Path,
    device: torch.device,
    secret: int,
    *,
    own_cases: bool = True,
    fuzz: int = 0,
    axes: Mapping[str, int] | None = None,
    run: Callable[..., Any] | None = None,
) -> EvaluationRounds:
    """Return what to ask solutions of a definition; `secret` seeds all values.

    Each case has two rounds, values A and B. `axes` replace constant axes. `run` stands
    for the reference's, whose text is executed in this process without it.
    """
    subject = subject_of(definition, axes)
    if run is not None:
        subject = subject.with_run(run)
    asking = _Asking(subject, draws_of(secret, "rounds"), device)
    if own_cases:
        asking.ask_cases()
        fuzz = max(fuzz, asking.ask_lengths())
    asking.ask_random(fuzz)
    asking.ask_workloads(workloads, dataset)
    groups = asking.possible()
    relations = asking.relations() if own_cases else []
    return EvaluationRounds(subject, groups, relations, asking.left_out)


class _Asking:
    """The rounds of a definition so far, and why some are left out; `draw` is secret."""

    def __init__(
        self, subject: Subject, draw: random.Random, device: torch.device
    ) -> None:
        self._subject, self._known = subject, subject.definition
        self._draw, self._device = draw, device
        self._declared = subject.op.cases(self._known)
        self._every = [case for case in self._declared if case.size != LIMITS]
        self._small = subject.cases(("small",))
        self._rounds: list[tuple[str, Sequence[Round]]] = []
        self.left_out: list[str] = []

    def ask_cases(self) -> None:
        """Ask the op's cases, each with two values, and values that are nearly the same."""
        cases = [case for case in self._every if case.size != "large"]
        judged = optional_op_module(self._known.op_type, "judged")
        cases += getattr(judged, "cases", lambda _: [])(self._known)
        for case in cases:
            rounds = [self._round(case), self._round(case)]
            # some cases come more often: nobody knows which, or when they are over
            rounds += [self._round(case)] * (self._draw.random() < _AGAIN)
            self._rounds.append((case.name, rounds))
        pairs = [(a, b) for _, (a, b, *_) in self._rounds if a.case in self._every]
        together = getattr(judged, "INPUTS_GO_TOGETHER", {})
        for number, one in enumerate(neighbours(pairs, self._draw, together)):
            self._rounds.append((f"beside {one.case.name} {number}", [one]))

    def ask_lengths(self) -> int:
        """Ask lengths that nobody published, and far values; return how many to vary more."""
        lengths = list(
            drawn_lengths(self._known, self._declared, self._draw, self._device)
        )
        for number, case in enumerate(lengths):
            self._ask(f"lengths {number}: {_axes(case)}", case)
        far = past_limits(self._known, self._declared, self._draw, self._device)
        for case in (*far, *far_cases(self._known, self._declared)):
            self._ask(f"limits: {case.name}", case)
        for size in far_sizes(self._subject, self._small):
            one = replace(self._round(size.case), gains=size.gains)
            self._rounds.append((f"limits: {size.name}", [one]))
        if lengths:
            return 0
        few = varied_anyway(self._known, self._every, self._device.type)
        if not few:
            why = "other lengths: too large here, or its op_type varies none"
            self.left_out.append(why)
        return few

    def ask_random(self, count: int) -> None:
        """Ask random cases within the constraints."""
        for number in range(count if self._small else 0):
            secret = self._draw.randrange(SECRETS)
            case, _ = varied(self._known, self._small, secret)
            self._ask(f"fuzz {number}: {case.name}", case)

    def ask_workloads(
        self, workloads: Sequence[Mapping[str, Any]], dataset: Path
    ) -> None:
        """Ask workloads of the dataset."""
        maker = self._subject.op.make_inputs
        for workload in workloads:
            case = workload_case(workload, dataset, self._known, self._every, maker)
            self._rounds.append((case.name, [self._round(case, workload)]))

    def possible(self) -> list[tuple[str, Sequence[Round]]]:
        """Return what can be asked here."""
        return [
            (name, rounds)
            for name, rounds in self._rounds
            if self._is_possible(name, rounds[0])
        ]

    def relations(self) -> list[tuple[Any, Round]]:
        """Return the relations that can be asked here, each with its round."""
        lists, relations = self._subject.op.relations, []
        if lists is None or self._subject.unresolved is not None:
            return []
        for relation in lists(self._known):
            # a solution returns what is declared, whatever a flag asks for
            if relation.peer is not None or relation.other_outputs:
                continue
            for case in relation.cases:
                if case.size != "large":
                    one = self._round(case)
                    if self._is_possible(relation_name(relation, case), one):
                        relations.append((relation, one))
        return relations

    def _ask(self, name: str, case: Case) -> None:
        self._rounds.append((name, [self._round(case)]))

    def _round(self, case: Case, workload: Mapping[str, Any] | None = None) -> Round:
        shift = self._draw.randrange(SECRETS)
        return Round(self._subject, case, shift, self._device, workload)

    def _is_possible(self, name: str, one: Round) -> bool:
        """Return whether a round can be asked here; note where it can't."""
        why = _obstacle(one, self._device)
        if why is not None:
            self.left_out.append(f"{name}: {why}")
        return why is None


def far_cases(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the cases of far factors: those that an op's kernels can be asked, else all."""
    judged = optional_op_module(definition.op_type, "judged")
    asked: Callable[..., list[Case]] | None = getattr(judged, "far_cases", None)
    if asked is not None:
        return asked(definition, declared)
    return [case for case in declared if case.moved]


def _obstacle(one: Round, device: torch.device) -> str | None:
    """Return why a round can't be asked here, None where it can."""
    definition = one.subject.definition
    # a solution's arguments are copied whole, and a workload's weights are large
    count = None if one.case.size == WORKLOAD else one.subject.op.peak_bytes
    lacks = shortage(definition, one.case, device, count)
    if lacks is not None or not isinstance(one.case, WorkloadCase):
        return None if lacks is None else str(lacks)
    lacks = why_not_asked(definition, one.case, device)
    if lacks is not None:
        return str(lacks)
    try:
        stated = one.case.stated_inputs(definition)
        words = re.findall(r"\w+", " ".join(definition.interface.constraints))
        drawn = definition.interface.input_specs.keys() - stated.keys()
        # what is random, and no constraint names, is made when it is asked for
        known = one if drawn & {*words} else replace(one, values=stated)
        broken = known.trial.broken_constraints()
        if broken:
            return f"its inputs break {broken[0]}"
    except Skip as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - whatever the dataset's files hold
        return f"no inputs: {type(error).__name__}: {error}"
    finally:
        one.drop()
    return None


def _axes(case: Case) -> str:
    """Return a case's lengths in words, such as `M 37`."""
    return ", ".join(f"{name} {length}" for name, length in case.axes.items())


def relation_name(relation: Any, case: Case) -> str:
    """Return the name of a relation on a case, as results have it."""
    return f"{METAMORPHIC}{relation.name} {case.name}"


def shuffled(values: Iterable[Any], secret: int) -> list[Any]:
    """Return values in an order that only the judge knows."""
    copied = list(values)
    draws_of(secret, "order").shuffle(copied)
    return copied
