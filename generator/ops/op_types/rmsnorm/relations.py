"""Relations of RMS norms: independent rows, equivalent columns, invariant to scale."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from generator.testing.definition import Definition
from generator.testing.relation import (
    Bound,
    Claim,
    RelatedCase,
    Relation,
    Subject,
    alike,
)
from generator.testing.seeded_inputs import Stream
from generator.testing.tolerance import EXACT, Tolerance

ALIKE = {
    "output": Bound(
        Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
        "float32 sums in another order: both sides round nearly the same value once, to "
        "neighbours at most: 2^-7, and that is rare",
    )
}
_SCALED = {
    "output": Bound(
        ALIKE["output"].tolerance,
        "rows of variance 1 that become 16 times as large in square: an eps of 1e-5 "
        "moves a value by 5e-6 of it, and the two are rounded to neighbours at most",
    )
}
_SWAPPED = {
    "output": Bound(EXACT, "a sum of two is the same in either order, bit by bit")
}


def norm_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a norm; residual-swapped needs a residual."""
    cases = [RelatedCase("seven-rows", "small", {"batch_size": 7})]
    found = [
        reordered("rows-reversed", ["batch_size"], ALIKE, cases),
        in_two_parts("rows-in-two", "batch_size", ALIKE, cases),
        reordered("columns-permuted", ["hidden_size"], ALIKE, cases, _shuffled),
        Relation("rows-scaled", _scaled, cases),
    ]
    if "residual" in definition.interface.inputs:
        found.append(Relation("residual-swapped", _swapped, cases))
    return found


def _shuffled(length: int) -> torch.Tensor:
    return Stream("columns").permutation(length)


def _scaled(subject: Subject) -> Iterator[Claim]:
    """Multiply rows by 4, which rounds nothing; eps stays."""
    names = {"hidden_states", "residual"} & set(subject.inputs)
    scaled = {name: 4.0 * subject.inputs[name] for name in names}
    yield from alike(subject.whole, subject.run({**subject.inputs, **scaled}), _SCALED)


def _swapped(subject: Subject) -> Iterator[Claim]:
    """Swap the residual and the hidden states."""
    inputs = subject.inputs
    swapped = {
        "hidden_states": inputs["residual"],
        "residual": inputs["hidden_states"],
    }
    yield from alike(subject.whole, subject.run({**inputs, **swapped}), _SWAPPED)
