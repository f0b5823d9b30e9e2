"""Building blocks of relations between two calls of `run()`; they need no ground truth.

An op's `relations(definition)` lists those that must hold for it: the same tokens on
other pages, a batch in two parts, a prefill in two chunks. Each asks `run()` again and
claims of what it returned that it follows from the first answer, within a bound that
comes from the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from kernel_judge.comparison.compare import ERROR, Comparison, compare
from kernel_judge.comparison.error_map import error_map
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.lazy_weights import fresh
from kernel_judge.inputs.trial import (
    RUN_SEED,
    Inputs,
    MakeInputs,
    Trial,
    as_tuple,
    seed,
)

Outputs = dict[str, Any]


@dataclass(frozen=True)
class RelatedCase(Case):
    """A case of relations alone: none of `cases`, so that none is recorded.

    `make_inputs` replaces the op's own, where a relation needs inputs of another kind.
    """

    make_inputs: MakeInputs | None = None


@dataclass(frozen=True)
class Bound:
    """The greatest distance allowed between two answers, and its derivation."""

    tolerance: Tolerance
    reason: str


@dataclass(frozen=True)
class Claim:
    """Claim that two answers are the same within a bound.

    `judge` replaces the bound's tolerance where more than one answer is right.
    """

    output: str
    actual: Any
    expected: Any
    bound: Bound
    judge: Callable[[Any, Any], Comparison] | None = None

    def verdict(
        self, run_tolerance: float | None = None, *, error_maps: bool | None = False
    ) -> Comparison:
        """Return the verdict; `run_tolerance` is the user's, for atol and rtol.

        `error_maps` asks for where the error sits also where it passes. An answer of
        zeros alone would satisfy any relation: that proves nothing.
        """
        if self.judge is not None:
            return self.judge(self.actual, self.expected)
        expected = self.expected
        if isinstance(expected, torch.Tensor) and not bool(expected.double().any()):
            return Comparison(ERROR, ("vacuous: run() returned nothing but zeros",))
        bound = self.bound.tolerance
        if run_tolerance is not None and bound != EXACT:
            bound = replace(bound, rtol=run_tolerance, atol=run_tolerance)
        result = compare(self.actual, expected, bound, same_dtype=False)
        if result.passed and not error_maps:
            return result
        return replace(result, where=error_map(self.actual, expected, bound))


class ReferenceCall:
    """A `run()` that relations call again: of one definition, on one device.

    It takes inputs by name on the CPU and returns outputs by name on the CPU, after
    these the inputs that it filled. Nobody writes to the inputs that it was given.
    """

    def __init__(
        self,
        definition: Definition,
        run: Callable[..., Any],
        filled_inputs: Callable[[Inputs], tuple[str, ...]] | None,
        device: torch.device,
        run_seed: int = RUN_SEED,
    ) -> None:
        self.definition = definition
        self._run = run
        self._filled = filled_inputs
        self._device = device
        self._run_seed = run_seed
        self._calls = 0

    def __call__(self, inputs: Inputs) -> Outputs:
        """Return what `run()` gives for inputs, drawn from a seed of its own."""
        passed, outputs = self._called(inputs)
        filled = () if self._filled is None else self._filled(inputs)
        return self.named(outputs, {name: passed[name] for name in filled})

    def answer(self, inputs: Inputs) -> tuple[Any, ...]:
        """Return what `run()` gives where a flag asks for other outputs than declared."""
        return self._called(inputs)[1]

    def _called(self, inputs: Inputs) -> tuple[dict[str, Any], tuple[Any, ...]]:
        passed = {name: fresh(value, self._device) for name, value in inputs.items()}
        self._calls += 1
        seed(self._run_seed + self._calls)
        return passed, as_tuple(self._run(*passed.values()))

    def named(self, outputs: tuple[Any, ...], filled: Inputs) -> Outputs:
        """Return outputs by name, and the filled inputs after them."""
        names = list(self.definition.interface.output_specs)
        assert len(outputs) == len(names), f"run() returned {len(outputs)} values"
        by_name = {**dict(zip(names, outputs, strict=True)), **filled}
        return {
            name: value.cpu() if isinstance(value, torch.Tensor) else value
            for name, value in by_name.items()
        }


@dataclass(frozen=True)
class RelatedCalls:
    """The calls that a relation compares: a first `run()`, and a way to call it again.

    `peer` is the reference that it is held against, where the relation names one.
    """

    trial: Trial
    run: ReferenceCall
    filled: tuple[str, ...] = ()
    peer: ReferenceCall | None = None

    @property
    def definition(self) -> Definition:
        """Return the definition whose relation this is."""
        return self.trial.definition

    @property
    def inputs(self) -> Inputs:
        """Return the inputs of the case, on the CPU; nobody writes to these."""
        return self.trial.inputs

    @cached_property
    def whole(self) -> Outputs:
        """Return what `run()` gives for the inputs as they are, asked once a case."""
        filled = {name: self.trial.after(name) for name in self.filled}
        return self.run.named(self.trial.outputs, filled)

    def other(self) -> ReferenceCall:
        """Return the peer, of a relation that has one."""
        assert self.peer is not None
        return self.peer


@dataclass(frozen=True)
class Relation:
    """One relation, the cases that it is tried on, and its claims of a subject.

    With `peer`, it is held against another definition of the same file, the first that
    `peer` accepts; where there is none, the relation is not listed. With `other_outputs`
    its calls ask for others than the definition declares.
    """

    name: str
    claims: Callable[[RelatedCalls], Iterator[Claim]]
    cases: Sequence[RelatedCase]
    peer: Callable[[Definition], bool] | None = None
    other_outputs: bool = False


def alike(
    expected: Outputs, actual: Outputs, bounds: Mapping[str, Bound]
) -> Iterator[Claim]:
    """Claim of every output that has a bound that it is the same."""
    for name, bound in bounds.items():
        if name in expected:
            yield Claim(name, actual[name], expected[name], bound)
