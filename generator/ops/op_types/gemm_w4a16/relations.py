"""Relations of products with int4 weights: rows, groups of K, powers of two, shards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.row_relations import reordered, select
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

_GROUP = 128
_ORDER = {
    "out": Bound(
        Tolerance(rtol=1e-3, atol=4e-5, nmse=1e-7),
        "float32 sums of elements of about 1 in another order; both sides round once to "
        "float16, to neighbours at most: 2^-10",
    ),
    "C": Bound(
        Tolerance(rtol=8e-3, atol=4e-5, nmse=1e-6),
        "the same, rounded to bfloat16: 2^-7",
    ),
}
_ADDED = {
    "out": Bound(
        Tolerance(rtol=5e-4, atol=4e-3, nmse=1.5e-7),
        "both parts and the whole are rounded to float16, half an ulp of values up to 5",
    ),
    "C": Bound(
        Tolerance(rtol=4e-3, atol=3.2e-2, nmse=1e-5),
        "both parts and the whole are rounded to bfloat16, half an ulp of values up to 5",
    ),
}
_POWERS = {
    "out": Bound(
        Tolerance(rtol=0.0, atol=6e-8, nmse=1e-14),
        "a power of two changes the exponent of every sum alone, and float16 rounds those "
        "below 2^-14 by up to 2^-25, which is doubled: one step of 2^-24, 5.97e-8",
    ),
    "C": Bound(EXACT, "a power of two changes the exponent of every sum alone"),
}
# names of inputs over K → how many elements of its first or second axis a group has
_OVER_K = {
    "awq": {"qweight": (0, _GROUP), "qzeros": (0, 1), "scales": (0, 1)},
    "gptq": {"qweight": (0, _GROUP // 8), "qzeros": (0, 1), "scales": (0, 1)},
    "int4pack": {"codes": (1, _GROUP // 2), "scales_and_zeros": (0, 1)},
}


def w4a16_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a product with groups of K."""
    cases = [RelatedCase("five-rows", "small", {"M": 5})]
    (output,) = definition.interface.outputs
    return [
        reordered("rows-reversed", ["M"], {output: _ORDER[output]}, cases),
        Relation("groups-reversed", _groups_reversed, cases),
        Relation("k-shards-add-up", _k_shards, cases),
        Relation("activations-doubled", _doubled, cases),
    ]


def _groups_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the groups of K in reverse: activations, codes, zeros and scales."""
    definition = subject.definition
    groups = definition.axes["K"] // _GROUP
    kind = next(kind for kind in _OVER_K if kind in definition.name)
    other: dict[str, Any] = dict(subject.inputs)
    for name, (dim, length) in {"x": (1, _GROUP), **_OVER_K[kind]}.items():
        order = torch.arange(groups * length).view(groups, length).flip(0).flatten()
        other[name] = select(subject.inputs[name], dim, order)
    (output,) = subject.whole
    yield from alike(subject.whole, subject.run(other), {output: _ORDER[output]})


def _k_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of two parts of K: the activations of the other part are zeros."""
    (output,) = subject.whole
    x = subject.inputs["x"]
    early = torch.arange(x.shape[1]) < x.shape[1] // 3
    total = torch.zeros_like(subject.whole[output], dtype=torch.float64)
    for part in (early, ~early):
        shard = {**subject.inputs, "x": x.where(part, 0.0)}
        total += subject.run(shard)[output].double()
    yield Claim(output, total, subject.whole[output].double(), _ADDED[output])


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply the activations by 2: the product doubles."""
    (output,) = subject.whole
    actual = subject.run({**subject.inputs, "x": subject.inputs["x"] * 2})
    expected = {output: subject.whole[output].double() * 2}
    doubled = {output: actual[output].double()}
    yield from alike(expected, doubled, {output: _POWERS[output]})
