"""What a solution is asked: cases, workloads and random draws, with secret values.

A round is one set of values of one case. The judge makes its inputs and expected outputs
once and asks every solution for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.definition import Definition as Loaded
from generator.evaluation.drawn_lengths import drawn_lengths, varied_anyway
from generator.mutation.bench import loaded
from generator.mutation.classes import AllTests, rendered_class
from generator.ops.registry import optional_op_module
from generator.ops.variation import varied
from generator.testing import generic
from generator.testing.definition import Case, Definition
from generator.testing.harness import ReferenceTests
from generator.testing.memory import dtype_of, shape_of, shortage, tensor_bytes
from generator.testing.policy import Repeating
from generator.testing.providers import PROVIDERS
from generator.testing.seeded_inputs import Stream
from generator.testing.source_names import METAMORPHIC
from generator.testing.tolerance import Tolerance, looser
from generator.testing.trial import Inputs, Trial, as_tuple

ORACLE, REFERENCE = "oracle", "reference"
_KEPT_BYTES = 64 << 20
# of a workload or large case, for a CPU
_CPU_BYTES = 64 << 20
_SEEDS = 2**31
_AGAIN = 0.25


class SolutionTests(AllTests):
    """Judge a solution by the loosest tolerance of the op's kernels.

    References keep closer to float64 than kernels, which round intermediate values.
    """

    @classmethod
    def tolerance(cls, output: str, source: str, case: str) -> Tolerance:
        """Return how far an output may be from what is expected, by `source`.

        A kernel's tolerance has room for two errors, the kernel's and the reference's
        to which it is compared. An oracle has none: the reference's is taken off.
        """
        strict = found = super().tolerance(output, ORACLE, case)
        for kernel in _kernels(cls):
            found = looser(found, _inverted(super().tolerance(output, kernel, case)))
        if source != ORACLE or found.hit_ratio < 1.0:
            return found
        rtol = max(strict.rtol, found.rtol - strict.rtol)
        atol = max(strict.atol, found.atol - strict.atol)
        # of two sides that round alike it is less than of one that rounds
        nmse = None if found.nmse is None else max(found.nmse, strict.nmse or 0.0)
        return replace(found, rtol=rtol, atol=atol, nmse=nmse)

    @classmethod
    def strict(cls, output: str, case: str) -> Tolerance:
        """Return the tolerance of references against the oracle."""
        return super().tolerance(output, ORACLE, case)


def _inverted(tolerance: Tolerance) -> Tolerance:
    """Invert the bounds of a norm's ratio: tests divide the reference's by the kernel's.

    The judge divides a solution's by the reference's.
    """
    if tolerance.norm_ratio is None:
        return tolerance
    low, high = tolerance.norm_ratio
    return replace(tolerance, norm_ratio=(1.0 / high, 1.0 / low))


def _kernels(cls: type[ReferenceTests]) -> Iterator[str]:
    for provider in PROVIDERS:
        backends = getattr(cls, f"{provider}_backends", None)
        if backends is not None:
            for backend in backends(cls.definition()):
                yield f"{provider}/{backend.name}" if backend.name else provider


@dataclass
class Round:
    """Hold one set of values of a case.

    `shift` is the secret seed that makes the values. `workload` is the dataset's, whose
    own inputs replace what the op's functions make.
    """

    tests: type[SolutionTests]
    case: Case
    shift: int
    device: torch.device
    run: Callable[..., Any]
    workload: Mapping[str, Any] | None = None
    dataset: Path = Path()

    @cached_property
    def trial(self) -> Trial:
        """Return the trial that makes the inputs."""
        return Trial(
            self.tests.definition(),
            self.case,
            self.device,
            self._inputs,
            self.run,
            guessed=self.tests.oracle is None,
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
        has_oracle = self.tests.oracle is not None and self.tests.unresolved is None
        return ORACLE if has_oracle else REFERENCE

    @cached_property
    def filled(self) -> tuple[str, ...]:
        """Return the names of the inputs that `run()` is to fill."""
        filled_inputs = self.tests.filled_inputs
        return () if filled_inputs is None else tuple(filled_inputs(self.inputs))

    @cached_property
    def expected(self) -> tuple[Any, ...]:
        """Return what is expected, on the CPU, inputs to be filled after the outputs."""
        if self.source == ORACLE:
            assert self.tests.oracle is not None
            found = as_tuple(
                self.tests.oracle(self.trial.definition, self.trial.lazy_inputs())
            )
        else:
            after = tuple(self.trial.after(name) for name in self.filled)
            found = self.trial.outputs + after
        return tuple(v.cpu() if isinstance(v, torch.Tensor) else v for v in found)

    def drop(self) -> None:
        """Forget values that are too large to be kept for the next solution."""
        if tensor_bytes(self.trial.definition, self.case) > _KEPT_BYTES:
            for name in ("trial", "inputs", "expected"):
                self.__dict__.pop(name, None)

    def calls(self) -> int:
        """Return how often to call for one verdict: for a law, many times."""
        wanted = [1]
        axes = {**self.tests.definition().axes, **self.case.axes}
        for name, spec in self.tests.interface.output_specs.items():
            policy = self.tests.policies.get(name)
            if isinstance(policy, Repeating):
                empty = torch.empty(shape_of(spec, axes), dtype=dtype_of(spec.dtype))
                wanted.append(policy.calls(empty, self.case))
        return max(wanted)

    def _inputs(self, definition: Definition, case: Case, stream: Stream) -> Inputs:
        own = getattr(case, "make_inputs", None) or self.tests.make_inputs
        if self.workload is None:
            made: Inputs = own(definition, case, stream)
            return made
        try:
            made = own(definition, case, stream)
        except Exception:  # noqa: BLE001 - the op's cases have parameters of their own
            made = generic.make_inputs(definition, case, stream)
        return {**made, **_stated(self.workload, self.dataset, definition)}


def _stated(
    workload: Mapping[str, Any], dataset: Path, definition: Definition
) -> Inputs:
    """Return the inputs whose values a workload has. Raises OSError, KeyError."""
    from safetensors import safe_open

    found: Inputs = {}
    for name, spec in definition.interface.input_specs.items():
        told = workload["inputs"][name]
        if told["type"] == "scalar":
            found[name] = told["value"]
        elif told["type"] == "safetensors":
            with safe_open(str(dataset / told["path"]), "pt") as file:
                found[name] = file.get_tensor(told["tensor_key"]).to(
                    dtype_of(spec.dtype)
                )
    return found


@dataclass(frozen=True)
class Asked:
    """Hold the rounds of a definition, what was left out and why, and the relations."""

    tests: type[SolutionTests]
    rounds: Sequence[tuple[str, Sequence[Round]]]
    relations: Sequence[tuple[Any, Round]]
    left_out: Sequence[str]


def _when_called(reference: str) -> Callable[..., Any]:
    """Return the reference's `run()`; nothing of its text is executed before a call."""
    found = cache(loaded(reference))
    return lambda *given: found()(*given)


def solution_tests(
    definition: Loaded, axes: Mapping[str, int] | None = None
) -> type[SolutionTests]:
    """Return the class that judges solutions of a definition; `axes` replace its own."""
    rendered = rendered_class(definition, axes)
    attributes = {n: v for n, v in vars(rendered).items() if not n.startswith("__")}
    return type(rendered.__name__, (SolutionTests,), attributes)


def rounds_of(
    definition: Loaded,
    workloads: Sequence[Mapping[str, Any]],
    dataset: Path,
    device: torch.device,
    secret: int,
    *,
    own_cases: bool = True,
    fuzz: int = 0,
    axes: Mapping[str, int] | None = None,
    run: Callable[..., Any] | None = None,
) -> Asked:
    """Return what to ask solutions of a definition; `secret` seeds all values.

    Each case has two rounds, values A and B. `axes` replace constant axes. `run` stands
    for the reference's, whose text is executed in this process without it.
    """
    tests = solution_tests(definition, axes)
    run = run or _when_called(definition.reference)
    draw = random.Random(secret)
    known = tests.definition()
    left_out: list[str] = []

    def round_of(case: Case, workload: Mapping[str, Any] | None = None) -> Round:
        shift = draw.randrange(_SEEDS)
        return Round(tests, case, shift, device, run, workload, dataset)

    asked: list[tuple[str, Sequence[Round]]] = []
    cases = [c for c in tests.cases(known) if c.size != "large"]
    judged = optional_op_module(known.op_type, "judged")
    if judged is not None:
        cases += judged.cases(known)
    for case in cases if own_cases else ():
        rounds = [round_of(case), round_of(case)]
        # some cases come more often: nobody knows which, or when they are over
        rounds += [round_of(case)] * (draw.random() < _AGAIN)
        asked.append((case.name, rounds))
    small = [case for case in tests.cases(known) if case.size == "small"]
    if own_cases:
        lengths = list(drawn_lengths(known, tests.cases(known), draw, device))
        asked += [
            (f"lengths {number}: {_axes(case)}", [round_of(case)])
            for number, case in enumerate(lengths)
        ]
        if not lengths:
            few = varied_anyway(known, tests.cases(known), device.type)
            if not few:
                left_out.append(
                    "other lengths: too large here, or its op_type varies none"
                )
            fuzz = max(fuzz, few)
    for number in range(fuzz if small else 0):
        case, _ = varied(known, small, draw.randrange(_SEEDS))
        asked.append((f"fuzz {number}: {case.name}", [round_of(case)]))
    for workload in workloads:
        case = Case(f"workload {workload['uuid']}", "medium", workload["axes"])
        asked.append((case.name, [round_of(case, workload)]))
    kept: list[tuple[str, Sequence[Round]]] = []
    for name, of_case in asked:
        why = _obstacle(of_case[0], device)
        if why is None:
            kept.append((name, of_case))
        else:
            left_out.append(f"{name}: {why}")
    relations = []
    if own_cases and hasattr(tests, "relations") and tests.unresolved is None:
        for relation in tests.relations(known):
            if relation.peer is None:
                relations += [
                    (relation, round_of(case))
                    for case in relation.cases
                    if case.size != "large"
                ]
    return Asked(tests, kept, relations, left_out)


def _obstacle(one: Round, device: torch.device) -> str | None:
    """Return why a round can't be asked here, None where it can."""
    definition = one.tests.definition()
    # a workload has none of the parameters by which an op_type counts
    peak_bytes = one.tests.peak_bytes if one.workload is None else None
    lacks = shortage(definition, one.case, device, peak_bytes)
    if lacks is not None:
        return str(lacks)
    if one.workload is None:
        return None
    size = tensor_bytes(definition, one.case)
    if device.type == "cpu" and size > _CPU_BYTES:
        return f"{size / 2**20:.0f} MiB are for a GPU"
    try:
        broken = one.trial.broken_constraints()
        if broken:
            return f"its inputs break {broken[0]}"
    except pytest.skip.Exception as error:
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
    found = list(values)
    random.Random(secret).shuffle(found)
    return found
