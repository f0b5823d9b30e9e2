"""Decide whether a surviving mutant is equivalent: the same outputs on random cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from generator.mutation.coupling import coupled_draws
from generator.mutation.mutant_runner import same_results
from generator.mutation.raised import Run
from generator.mutation.widening import widened_by_table
from generator.ops.variation import varied
from kernel_judge.inputs.lazy_weights import fresh, lazy
from kernel_judge.inputs.trial import Inputs, as_tuple, same_bits
from kernel_judge.subject import Subject

RUNS = 200
_SEED = 1
_CPU = torch.device("cpu")
# largest errors against float64 relative to the reference's: over all cases, and of
# the worst element of one output in a case
_RMS_RATIO, _WORST_RATIO = 1.05, 2.0


@dataclass(frozen=True)
class EquivalenceProof:
    """Whether a mutant is equivalent to the reference, and the evidence.

    `same_bits` says that it returned the reference's in all random cases.
    """

    equivalent: bool
    how: str
    same_bits: bool = False


@dataclass
class Draw:
    """One random case: inputs, the reference's outputs and the oracle's."""

    inputs: Inputs
    outputs: tuple[Any, ...]
    expected: tuple[Any, ...] | None = None


@dataclass
class Equivalence:
    """The random cases on which one definition's mutants are compared with its reference.

    Random cases for which the reference raises are not counted.
    """

    subject: Subject
    run: Run
    oracle: Callable[..., Any] | None
    draws: list[Draw] = field(default_factory=list)
    _next: int = 0

    @widened_by_table()
    def check(self, run: Run) -> EquivalenceProof:
        """Return whether a mutant is equivalent to the reference.

        It is if all outputs have the same bits, or if those that differ are as close to
        the float64 oracle as the reference's, as after a reordering of the arithmetic.
        Raises whatever run() raises.
        """
        squares = [0.0, 0.0]
        same = True
        for number in range(RUNS):
            draw = self._draw(number)
            if draw is None:
                return EquivalenceProof(False, "the reference takes no random cases")
            outputs = _call(run, draw.inputs)
            if same_results(draw.outputs, outputs):
                continue
            same = False
            errors = self._errors(draw, outputs)
            if errors is None:
                return EquivalenceProof(
                    False, f"differs in random case {number + 1} of {RUNS}"
                )
            squares = [total + e for total, e in zip(squares, errors, strict=True)]
        if same:
            how = f"the same bits in {RUNS} random cases"
            return EquivalenceProof(True, how, same_bits=True)
        ratio = math.sqrt(squares[1] / squares[0]) if squares[0] else 1.0
        return EquivalenceProof(
            ratio <= _RMS_RATIO,
            f"rounds otherwise: {ratio:.3f} times as far from float64 as the reference "
            f"in {RUNS} random cases",
        )

    @widened_by_table()
    def draw_all(self) -> None:
        """Make all random cases that the reference accepts."""
        self._draw(RUNS - 1)

    def _draw(self, number: int) -> Draw | None:
        """Return a random case, None if the reference accepts too few."""
        if number < len(self.draws):
            return self.draws[number]
        definition = self.subject.definition
        cases = self.subject.cases(("small",))
        while len(self.draws) <= number:
            if not cases or self._next > 2 * RUNS:
                return None
            case, stream = varied(definition, cases, self._next)
            self._next += 1
            inputs = self.subject.op.make_inputs(definition, case, stream)
            with suppress(Exception):
                self.draws.append(Draw(inputs, _call(self.run, inputs)))
        return self.draws[number]

    def _errors(
        self, draw: Draw, outputs: tuple[Any, ...]
    ) -> tuple[float, float] | None:
        """Return the squared errors of reference and mutant.

        None if there is no oracle, or if an output is clearly worse than the reference's.
        """
        if self.oracle is None or len(outputs) != len(draw.outputs):
            return None
        if draw.expected is None:
            copies = {n: lazy(value, _CPU) for n, value in draw.inputs.items()}
            answer = self.oracle(self.subject.definition, copies)
            draw.expected = as_tuple(answer)
        total = [0.0, 0.0]
        names = list(self.subject.interface.output_specs)
        for place, name in enumerate(names):
            first, second = draw.outputs[place], outputs[place]
            if same_bits(first, second):
                continue
            if name in self.subject.op.policies:
                if not _same_rows(first, second):
                    return None
                continue
            pair = _squared_errors(first, second, draw.expected[place])
            if pair is None:
                return None
            total = [t + p for t, p in zip(total, pair, strict=True)]
        count = len(names)
        if not same_results(draw.outputs[count:], outputs[count:]):
            return None
        return (total[0], total[1])


def _squared_errors(
    first: Any, second: Any, expected: Any
) -> tuple[float, float] | None:
    """Return both sums of squared errors, relative to the expected output's squares."""
    if not _alike(first, second) or not isinstance(expected, torch.Tensor):
        return None
    wide = expected.double()
    if not first.dtype.is_floating_point or first.shape != wide.shape:
        return None
    finite = wide.isfinite()
    same_infinities = torch.equal(first[~finite], second[~finite])
    if not same_infinities or not bool(second[finite].isfinite().all()):
        return None
    scale = float(wide[finite].square().sum()) or 1.0
    errors = [(side.double() - wide)[finite].abs() for side in (first, second)]
    reference, mutant = (float(error.max()) for error in errors)
    if mutant > _WORST_RATIO * reference:
        return None
    squares = [float(error.square().sum()) / scale for error in errors]
    return (squares[0], squares[1])


def _alike(first: Any, second: Any) -> bool:
    tensors = isinstance(first, torch.Tensor) and isinstance(second, torch.Tensor)
    return tensors and first.shape == second.shape and first.dtype == second.dtype


def _same_rows(first: Any, second: Any) -> bool:
    """Return whether each row holds the same indices, in any order."""
    if not _alike(first, second) or first.ndim != 2:
        return False
    return torch.equal(first.sort(dim=1).values, second.sort(dim=1).values)


def _call(run: Run, inputs: Inputs) -> tuple[Any, ...]:
    """Return the outputs of run(), then the inputs that it changed."""
    copies = {name: fresh(value, _CPU) for name, value in inputs.items()}
    versions = {name: _version(value) for name, value in copies.items()}
    # torch.manual_seed() seeds every kind of device, which takes two milliseconds
    torch.default_generator.manual_seed(_SEED)
    with coupled_draws():
        outputs = as_tuple(run(*copies.values()))
    written = (
        value
        for name, value in copies.items()
        if _version(value) != versions[name]
        and not same_bits(value, fresh(inputs[name], _CPU))
    )
    # outputs may be views of inputs
    copied = (o.clone() if isinstance(o, torch.Tensor) else o for o in outputs)
    return (*copied, *written)


def _version(value: Any) -> int:
    """Return the number of in-place writes to a tensor."""
    return value._version if isinstance(value, torch.Tensor) else 0
