"""Relations of products with 4-bit weights: rows, outputs and groups are free, scales move."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_ALIKE = {
    "out": Bound(
        Tolerance(rtol=8e-3, atol=1e-4, nmse=1e-6),
        "float32 sums in another order, 5e-5 on either side where they cancel; both round "
        "once, to neighbours at most: 2^-7, and that is rare",
    )
}
_SCALED = {"out": Bound(EXACT, "a power of two moves from one scale to the other")}


def product_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a product of float8 and int4."""
    cases = [RelatedCase("five-rows", "small", {"M": 5})]
    return [
        reordered("rows-reversed", ["M"], _ALIKE, cases),
        in_two_parts("rows-in-two", "M", _ALIKE, cases),
        reordered("outputs-reversed", ["N"], _ALIKE, cases),
        Relation("scale-moved", _moved, cases),
        Relation("groups-exchanged", _exchanged, cases),
    ]


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the groups' scales, and halve that of the activations."""
    inputs = subject.inputs
    other = {"w_scale": 2.0 * inputs["w_scale"], "a_scale": inputs["a_scale"] / 2.0}
    yield from alike(subject.whole, subject.run({**inputs, **other}), _SCALED)


def _exchanged(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the order of the groups round, of activations, weights and scales."""
    inputs = subject.inputs
    groups = inputs["w_scale"].shape[1]

    def turned(value: torch.Tensor) -> torch.Tensor:
        # not every operation knows float8
        bits = value.view(torch.uint8) if value.itemsize == 1 else value
        parts = bits.reshape(len(bits), groups, -1).flip(1).flatten(1).contiguous()
        return parts.view(value.dtype)

    other = {name: turned(inputs[name]) for name in ("a", "qweight", "w_scale")}
    yield from alike(subject.whole, subject.run({**inputs, **other}), _ALIKE)
