"""Relations of RMS norms: independent rows, equivalent columns, invariant to scale."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
        "float32 sums in another order: both sides round nearly the same value once, to "
        "neighbours at most: 2^-7, and that is rare",
    ),
    "new_residual": Bound(EXACT, "each element is a sum of its own"),
}
_SCALED = {
    "output": Bound(
        ALIKE["output"].tolerance,
        "rows of variance 1 that become 16 times as large in square: an eps of 1e-5 "
        "moves a value by 5e-6 of it, and the two are rounded to neighbours at most",
    )
}
_SAME_SUM = Bound(EXACT, "a sum of two is the same in either order, bit by bit")
_SWAPPED = {"output": _SAME_SUM, "new_residual": _SAME_SUM}
_CODES = Bound(
    Tolerance(rtol=1.25e-1, atol=2e-3),
    "nearly the same float32 values are rounded to e4m3: to neighbours at most, 2^-3 "
    "apart, near ties alone",
)
_QUANTIZED = {
    "output": _CODES,
    "new_residual": Bound(EXACT, "each element is a sum of its own"),
}
_HALVED = Bound(
    Tolerance(rtol=0.0, atol=2e-3),
    "a factor of 2 moves the exponent alone, below 448; smaller values than 2^-6 are "
    "rounded in steps of 2^-9",
)
_LINEAR = Bound(
    Tolerance(rtol=8e-3, atol=1e-6),
    "y·s(y) + y·s(-y) is y: each of the four terms is rounded to bfloat16, by 2^-8 of "
    "itself, which adds up to 2^-7 of the whole",
)


def norm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a norm; residual-swapped needs a residual."""
    cases = [RelatedCase("seven-rows", "small", {"batch_size": 7})]
    bounds = _QUANTIZED if "quantized" in definition.constants else ALIKE
    relations = [
        reordered("rows-reversed", ["batch_size"], bounds, cases),
        in_two_parts("rows-in-two", "batch_size", bounds, cases),
        reordered("columns-permuted", ["hidden_size"], bounds, cases, _shuffled),
        Relation("rows-scaled", _scaled, cases),
    ]
    if "quantized" in definition.constants:
        relations.append(Relation("scale-doubled", _scale_doubled, cases))
    if "activation" in definition.constants:
        relations.append(Relation("odd-part-is-linear", _odd_part, cases))
    if "residual" in definition.interface.inputs:
        relations.append(Relation("residual-swapped", _swapped, cases))
    return relations


def _shuffled(length: int) -> torch.Tensor:
    return Stream("columns").permutation(length)


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply rows by 4, which rounds nothing; eps stays."""
    names = {"hidden_states", "residual"} & set(subject.inputs)
    scaled = {name: 4.0 * subject.inputs[name] for name in names}
    actual = subject.run({**subject.inputs, **scaled})
    whole = {"output": subject.whole["output"]}
    if "quantized" in subject.definition.constants:
        yield from alike(whole, actual, {"output": _CODES})
    else:
        yield from alike(whole, actual, _SCALED)


def _scale_doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Divide by twice the scale: codes stand for half the values."""
    inputs, whole = subject.inputs, subject.whole["output"].float()
    actual = subject.run({**inputs, "scale": 2.0 * inputs["scale"]})["output"]
    yield Claim("output", 2.0 * actual.float(), whole, _HALVED)


def _odd_part(subject: RelatedCalls) -> Iterator[Claim]:
    """Double and negate the weights: what rows of y and -y differ by is y itself."""
    inputs = subject.inputs

    def odd(factor: float) -> torch.Tensor:
        up, down = (
            subject.run({**inputs, "weight": sign * factor * inputs["weight"]})
            for sign in (1.0, -1.0)
        )
        difference: torch.Tensor = up["output"].float() - down["output"].float()
        return difference

    yield Claim("output", odd(2.0), 2.0 * odd(1.0), _LINEAR)


def _swapped(subject: RelatedCalls) -> Iterator[Claim]:
    """Swap the residual and the hidden states."""
    inputs = subject.inputs
    swapped = {
        "hidden_states": inputs["residual"],
        "residual": inputs["hidden_states"],
    }
    yield from alike(subject.whole, subject.run({**inputs, **swapped}), _SWAPPED)
