"""Relations of grouped products: experts renumbered, blocks of K reversed, zeros in K."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.product_bounds import PARTS_ADDED, SUMS_REORDERED
from generator.ops.row_relations import select
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

_BLOCK = 128
_SAME = Bound(EXACT, "the same rows and the same weight, in the same order")


def grouped_relations(definition: Definition) -> list[Relation]:
    """Return the relations of products of given experts."""
    cases = [_case(definition)]
    return [
        Relation("experts-renumbered", _renumbered, cases),
        Relation("k-blocks-reversed", _blocks_reversed, cases),
        Relation("k-shards-add-up", _k_shards, cases),
    ]


def _case(definition: Definition) -> RelatedCase:
    """Return the case of two rows of the first expert and one of the last."""
    rows = (2, *[0] * (definition.axes["num_experts"] - 2), 1)
    masked = "masked_m" in definition.interface.inputs
    axes = {"max_m": 8} if masked else {"M": 2 * _BLOCK}
    return RelatedCase("few-rows", "small", axes, {"rows": rows})


def _renumbered(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the experts numbers in reverse: rows name their weight by the new number."""
    inputs = subject.inputs
    order = torch.arange(len(inputs["b"]) - 1, -1, -1)
    other: dict[str, Any] = dict(inputs)
    expected = subject.whole["out"]
    names = ["b", "b_scale"]
    if "masked_m" in inputs:
        names += ["a", "a_scale", "masked_m"]
        expected = select(expected, 0, order)
    else:
        named = inputs["m_indices"]
        other["m_indices"] = torch.where(named < 0, named, len(order) - 1 - named)
    for name in names:
        other[name] = select(inputs[name], 0, order)
    yield from alike({"out": expected}, subject.run(other), {"out": _SAME})


def _blocks_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the blocks of K in reverse, in codes and scales."""
    inputs = subject.inputs
    blocks = inputs["b_scale"].shape[2]
    order = torch.arange(blocks - 1, -1, -1)
    places = torch.arange(blocks * _BLOCK).view(blocks, _BLOCK)[order].flatten()
    other: dict[str, Any] = dict(inputs)
    for name, along in (("a", places), ("b", places), ("a_scale", order)):
        other[name] = select(inputs[name], inputs[name].dim() - 1, along)
    other["b_scale"] = select(inputs["b_scale"], 2, order)
    yield from alike(subject.whole, subject.run(other), {"out": SUMS_REORDERED})


def _k_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of two parts of K: the other part's activations are zeros."""
    a = subject.inputs["a"].view(torch.uint8)
    cut = max(a.shape[-1] // 3 // _BLOCK, 1) * _BLOCK
    total = torch.zeros_like(subject.whole["out"], dtype=torch.float64)
    for part in (slice(0, cut), slice(cut, None)):
        # float8 has no arithmetic; the code of zero is zero
        codes = torch.zeros_like(a)
        codes[..., part] = a[..., part]
        shard = {**subject.inputs, "a": codes.view(torch.float8_e4m3fn)}
        total += subject.run(shard)["out"]
    yield Claim("out", total, subject.whole["out"].double(), PARTS_ADDED)
