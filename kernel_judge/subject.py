"""Things under test, as values: an op, a definition with its reference, a file of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import torch

from kernel_judge.comparison.policy import Policy
from kernel_judge.comparison.tolerance import Override, Tolerance, choose_tolerance
from kernel_judge.definition import Backend, Case, Definition, Interface, TensorSpec
from kernel_judge.inputs import generic
from kernel_judge.inputs.memory import PeakBytes
from kernel_judge.inputs.repeated import repeated_inputs
from kernel_judge.inputs.trial import Inputs, MakeInputs, Trial
from kernel_judge.provider import Provider, serving
from kernel_judge.relation import Relation

Run = Callable[..., Any]
CPU = torch.device("cpu")
SIZES = ("small", "medium")
"""The sizes of the cases that are tested unless others are asked for."""


@dataclass(frozen=True)
class Kernel:
    """A provider's kernels for an op.

    `backends(definition)` lists the ways in which the provider computes it,
    `call(definition, inputs, backend)` calls one. `is_named` is of a kernel that the
    definition itself names: it is called although nobody knows the op, unless `refusal`
    says why not. `check_inputs` skips a trial on whose inputs the call proves nothing.
    """

    backends: Callable[[Definition], Sequence[Backend]]
    call: Callable[..., Any]
    is_named: bool = False
    refusal: str | None = None
    check_inputs: Callable[[Trial], None] | None = None


@dataclass(frozen=True)
class Op:
    """An op_type's declaration: cases, inputs, oracle, kernels, bounds and relations.

    `oracle(definition, inputs)` computes the outputs independently, in float64.
    `defined_rows` returns which rows of an output kernels define, bool [rows].
    `filled_inputs` names the inputs that `run()` is to fill: the oracle and the kernels
    return them after the outputs. `kernels` are by provider. `guesses_inputs` is of an
    op that nobody declared: whether `run()` allows the inputs is unknown. Where it
    `answers_alone`, the oracle is the definition's own, and needs nothing of an op_type.
    An op that `only_moves` has outputs that are elements of inputs, at places that no
    value decides.
    """

    cases: Callable[[Definition], Sequence[Case]] = generic.cases
    make_inputs: MakeInputs = generic.make_inputs
    oracle: Callable[[Definition, Inputs], Any] | None = None
    defined_rows: Callable[[Definition, Inputs], torch.Tensor] | None = None
    filled_inputs: Callable[[Inputs], tuple[str, ...]] | None = None
    peak_bytes: PeakBytes | None = None
    tolerances: tuple[Override, ...] = ()
    policies: Mapping[str, Policy] = field(default_factory=dict)
    relations: Callable[[Definition], Sequence[Relation]] | None = None
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    guesses_inputs: bool = False
    answers_alone: bool = False
    only_moves: bool = False


@dataclass(frozen=True, eq=False)
class Subject:
    """One definition under test: what its op declares, and its reference.

    `reference` loads `run()`, not before a check asks for it. `unresolved` says why
    nothing can be compared with it. `dependent_constants` were read from the reference.
    `run_tolerance` replaces every atol and rtol. `sha256` names the definition's text in results.
    """

    definition: Definition
    op: Op
    reference: Callable[[], Run]
    sizes: tuple[str, ...] = SIZES
    unresolved: str | None = None
    dependent_constants: tuple[str, ...] = ()
    run_tolerance: float | None = None
    sha256: str = ""

    @property
    def name(self) -> str:
        """Return the definition's name."""
        return self.definition.name

    @property
    def op_type(self) -> str:
        """Return the definition's op_type."""
        return self.definition.op_type

    @property
    def interface(self) -> Interface:
        """Return the definition's inputs, outputs and constraints."""
        return self.definition.interface

    @cached_property
    def specs(self) -> Mapping[str, TensorSpec]:
        """Return the declarations of inputs and outputs by name."""
        return {**self.interface.input_specs, **self.interface.output_specs}

    @cached_property
    def run(self) -> Run:
        """Load the reference and return its `run()`. Raises what the text raises."""
        return self.reference()

    def call(self, *inputs: Any) -> Any:
        """Call `run()`, which is loaded by the first call."""
        return self.run(*inputs)

    def with_run(self, run: Run) -> Subject:
        """Return the same subject with another `run()`: a mutant, or a solution."""
        return replace(self, reference=lambda: run)

    def cases(self, sizes: Collection[str] | None = None) -> list[Case]:
        """Return the cases of some sizes; of those tested by default without any."""
        wanted = self.sizes if sizes is None else sizes
        return [case for case in self.op.cases(self.definition) if case.size in wanted]

    def trial(
        self,
        case: Case,
        device: torch.device = CPU,
        *,
        run: Run | None = None,
        make_inputs: MakeInputs | None = None,
        shift: int | None = None,
        error_maps: bool = False,
        cpu_seconds: float | None = None,
    ) -> Trial:
        """Return a trial of one case, which makes its inputs when a check asks for them.

        `run` replaces the reference, `make_inputs` the op's; `shift` is the seed of
        other inputs than those of every run, `cpu_seconds` the time after which a
        comparison is given up.
        """
        # a case of relations, or a workload, may make its own
        of_case: MakeInputs | None = getattr(case, "make_inputs", None)
        return Trial(
            self.definition,
            case,
            device,
            make_inputs or partial(repeated_inputs, of_case or self.op.make_inputs),
            run or self.call,
            guessed=self.op.guesses_inputs,
            error_maps=error_maps,
            shift=shift,
            cpu_seconds=cpu_seconds,
        )

    def tolerance(self, output: str, source: str, case: Case) -> Tolerance:
        """Return an output's tolerance against a source (`flashinfer/fa2`)."""
        return choose_tolerance(
            tuple(o.at(self.definition, case) for o in self.op.tolerances),
            output,
            self.specs[output].dtype,
            source,
            self.run_tolerance,
            case.name,
            self.definition.constants,
            {**self.definition.axes, **case.axes},
        )

    def filled(self, inputs: Inputs) -> tuple[str, ...]:
        """Return the names of the inputs that `run()` is to fill."""
        fills = self.op.filled_inputs
        return () if fills is None else tuple(fills(inputs))

    @cached_property
    def kernels(self) -> Mapping[str, Kernel]:
        """Return provider → its kernels: those of the op, and what providers bring."""
        return {**self.op.kernels, **brought(self.op_type)}

    def backends(self, provider: str) -> Sequence[Backend]:
        """Return a provider's backends for the definition, none without a kernel."""
        kernel = self.kernels.get(provider)
        return () if kernel is None else kernel.backends(self.definition)

    def why_unresolved(self, provider: str) -> str | None:
        """Return why a provider is not asked, None where it is."""
        kernel = self.kernels.get(provider)
        named = kernel is not None and kernel.is_named
        return kernel.refusal if kernel is not None and named else self.unresolved


def brought(op_type: str) -> dict[str, Kernel]:
    """Return provider → the kernels that it brings for an op_type of others."""
    return {one.name: _brought(one, op_type) for one in serving(op_type)}


def _brought(provider: Provider, op_type: str) -> Kernel:
    """Return what a provider's module has as `KERNEL`, one that says why not if nothing."""
    module = provider.adapters[op_type]
    try:
        kernel = getattr(importlib.import_module(module), "KERNEL", None)
        why = "has no KERNEL, a kernel_judge.Kernel"
    except Exception as error:  # noqa: BLE001 - whatever an import raises
        kernel, why = None, " ".join(f"{type(error).__name__}: {error}".split())[:200]
    if isinstance(kernel, Kernel):
        return kernel
    broken = Backend("broken", limit=f"{module}: {why}")
    return Kernel(lambda _: (broken,), lambda *_: None)


@dataclass(frozen=True, eq=False)
class SubjectFile:
    """The subjects of one rendered file, in its order: relations find peers here."""

    subjects: tuple[Subject, ...]

    def __iter__(self) -> Iterator[Subject]:
        return iter(self.subjects)

    def peer(self, relation: Relation) -> Subject | None:
        """Return the first subject, by name, whose definition a relation accepts."""
        accepts = relation.peer
        if accepts is None:
            return None
        by_name = sorted(self.subjects, key=lambda subject: subject.name)
        return next((s for s in by_name if accepts(s.definition)), None)

    def relations(
        self, subject: Subject, sizes: Collection[str]
    ) -> list[tuple[Relation, Case]]:
        """Return the relations of a subject with each of their cases, case by case.

        One whose peer is not in the file is left out. Relations of one case stand
        together, so that its inputs are made once.
        """
        lists = subject.op.relations
        relations = () if lists is None else lists(subject.definition)
        pairs = [
            (relation, case)
            for relation in relations
            if relation.peer is None or self.peer(relation) is not None
            for case in relation.cases
            if case.size in sizes
        ]
        order = {id(case): place for place, (_, case) in reversed([*enumerate(pairs)])}
        return sorted(pairs, key=lambda pair: order[id(pair[1])])
