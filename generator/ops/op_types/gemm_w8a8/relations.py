"""Relations of 8-bit products: rows and columns, scales, zeros, parts of K."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.product_bounds import PARTS_ADDED, SUMS_REORDERED
from generator.ops.row_relations import last_half_twice, reordered
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_SAME = Bound(EXACT, "sums of integers have no order, and their scales are the same")
_POWERS = Bound(EXACT, "a power of two changes the exponent of every element alone")


def w8a8_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the definition's codes and scales.

    Shards: a rank of row parallelism has a part of K, one of column parallelism a part
    of N.
    """
    cases = [RelatedCase("five-rows", "small", {"M": 5})]
    ((output, spec),) = definition.interface.output_specs.items()
    inputs = definition.interface.inputs
    is_exact = definition.interface.input_specs["x"].dtype == "int8"
    bounds = {output: _SAME if is_exact else SUMS_REORDERED}
    relations = [
        reordered("rows-and-columns-reversed", ["M", "N"], bounds, cases),
        reordered("n-shards-concatenate", ["N"], bounds, cases, last_half_twice),
        Relation("k-shards-add-up", _k_shards, cases),
    ]
    if spec.dtype == "bfloat16":
        relations.append(Relation("factor-moved-to-the-weight", _moved, cases))
    if "x_zero" in inputs:
        relations.append(Relation("codes-and-zeros-move-together", _together, cases))
    return relations


def _k_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of two parts of K: the codes of the other part are zero's."""
    (output,) = subject.whole
    x, length = subject.inputs["x"], subject.definition.axes["K"]
    zero = torch.zeros(len(x), 1, dtype=torch.uint8)
    if "x_zero" in subject.inputs:
        zero = subject.inputs["x_zero"].view(torch.uint8)[:, None]
    early = torch.arange(length) < length // 3
    total = torch.zeros_like(subject.whole[output], dtype=torch.float64)
    for part in (early, ~early):
        # by bits: float8 takes no masks
        bits = torch.where(part, x.view(torch.uint8), zero)
        shard = {**subject.inputs, "x": bits.view(x.dtype)}
        total += subject.run(shard)[output].double()
    exact = subject.whole[output].dtype == torch.int32
    yield Claim(
        output, total, subject.whole[output].double(), _SAME if exact else PARTS_ADDED
    )


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Divide the scales of the activations by 4, multiply those of the weight by 4."""
    inputs = subject.inputs
    other = {
        **inputs,
        "x_scale": inputs["x_scale"] / 4.0,
        "weight_scale": inputs["weight_scale"] * 4.0,
    }
    yield from alike(subject.whole, subject.run(other), {"out": _POWERS})


def _together(subject: RelatedCalls) -> Iterator[Claim]:
    """Add 1 to all codes of a row and to its zero: the values stay.

    A code of 127 has none above it: where a row has one, both stay.
    """
    x, zeros = subject.inputs["x"], subject.inputs["x_zero"]
    step = (x.amax(dim=1) < 127).to(torch.int8)
    other = {
        **subject.inputs,
        "x": x + step[:, None],
        "x_zero": zeros + step,
    }
    yield from alike(subject.whole, subject.run(other), {"out": _SAME})
