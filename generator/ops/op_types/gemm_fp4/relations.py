"""Relations of products of e2m1 codes: signs, powers of two, rows, parts of K."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.product_bounds import PARTS_ADDED, SUMS_REORDERED
from generator.ops.row_relations import reordered
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

_SIGNS = Bound(EXACT, "a sign changes that of every product and of no magnitude")
_POWERS = Bound(EXACT, "a power of two changes the exponent of every sum alone")
# the sign bits of two codes, as an int8
_SIGN_BITS = 0x88 - 0x100


def fp4_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the definition's kind of scales.

    Rows are put in another order where their scales lie row by row.
    """
    swizzled = "padded_m" in (definition.interface.input_specs["a_scale"].shape or ())
    axes = {"M": 5, "padded_m": 128} if swizzled else {"M": 5}
    cases = [RelatedCase("five-rows", "small", axes)]
    relations = [
        Relation("negated", _negated, cases),
        Relation("doubled", _doubled, cases),
        Relation("k-shards-add-up", _k_shards, cases),
    ]
    if not swizzled:
        bounds = {"out": SUMS_REORDERED}
        rows = reordered("rows-and-columns-reversed", ["M", "N"], bounds, cases)
        relations.append(rows)
    return relations


def _negated(subject: RelatedCalls) -> Iterator[Claim]:
    """Change the sign of every code of a: the product changes its own."""
    actual = subject.run({**subject.inputs, "a": subject.inputs["a"] ^ _SIGN_BITS})
    yield from alike({"out": -subject.whole["out"]}, actual, {"out": _SIGNS})


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the factor of all, or add 1 to all exponents of b: the product doubles."""
    other: dict[str, Any] = dict(subject.inputs)
    if "alpha" in other:
        other["alpha"] = other["alpha"] * 2
    else:
        other["b_scale"] = other["b_scale"] + 1
    yield from alike(
        {"out": subject.whole["out"] * 2}, subject.run(other), {"out": _POWERS}
    )


def _k_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of two parts of K: the codes of the other part are zeros."""
    a = subject.inputs["a"]
    early = torch.arange(a.shape[1]) < a.shape[1] // 3
    total = torch.zeros_like(subject.whole["out"], dtype=torch.float64)
    for part in (early, ~early):
        shard = {**subject.inputs, "a": a.where(part, 0)}
        total += subject.run(shard)["out"]
    yield Claim("out", total, subject.whole["out"].double(), PARTS_ADDED)
