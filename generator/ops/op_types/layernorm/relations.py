"""Relations of layer norms: independent rows, equivalent columns, no matter the mean."""

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
)

_ROUNDED = Tolerance(rtol=8e-3, atol=6e-6, nmse=1e-6)
_ALIKE = {
    "output": Bound(
        _ROUNDED,
        "float32 sums in another order: both sides round nearly the same value once, to "
        "neighbours at most: 2^-7; where product and bias cancel, 6e-6 are left",
    )
}
_SCALED = Bound(
    _ROUNDED,
    "rows of variance 1 that become 4096 times as large in square: an eps of 1e-5 moves "
    "a value by 5e-6 of it, and the two are rounded to neighbours at most",
)
_MOVED = Bound(
    _ROUNDED,
    "multiples of 1/16 below 8 stay so when 4 is added: the differences from the mean "
    "are the same but for the rounding of the mean",
)
_NEGATED = Bound(EXACT, "of -x and -bias all values have the other sign, the same bits")


def norm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a layer norm."""
    cases = [RelatedCase("seven-rows", "small", {"batch_size": 7})]
    return [
        reordered("rows-reversed", ["batch_size"], _ALIKE, cases),
        in_two_parts("rows-in-two", "batch_size", _ALIKE, cases),
        reordered("columns-permuted", ["hidden_size"], _ALIKE, cases, _shuffled),
        Relation("rows-scaled-and-negated", _scaled, cases),
        Relation("mean-moved", _moved, cases),
    ]


def _shuffled(length: int) -> torch.Tensor:
    return Stream("columns").permutation(length)


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply rows by 64, and rows and bias by -1: neither rounds anything."""
    inputs, whole = subject.inputs, subject.whole["output"]
    x = inputs["hidden_states"]
    large = subject.run({**inputs, "hidden_states": 64.0 * x})["output"]
    yield Claim("output", large, whole, _SCALED)
    other = {**inputs, "hidden_states": -x, "bias": -inputs["bias"]}
    yield Claim("output", subject.run(other)["output"], -whole, _NEGATED)


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Add 4 to rows that are rounded to multiples of 1/16."""
    inputs = subject.inputs
    coarse = (16.0 * inputs["hidden_states"]).round() / 16.0
    expected, actual = (
        subject.run({**inputs, "hidden_states": rows})["output"]
        for rows in (coarse, coarse + 4.0)
    )
    yield Claim("output", actual, expected, _MOVED)
