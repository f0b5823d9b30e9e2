"""Relations of float8 products: rows, blocks, scales, and shards of tensor parallelism."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.product_bounds import PARTS_ADDED, SUMS_REORDERED
from generator.ops.row_relations import last_half_twice, reordered, select
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
_POWERS = Bound(EXACT, "a power of two changes the exponent of every sum alone")


def gemm_fp8_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the definition's kind of scales.

    Shards: a rank of row parallelism has a part of K, one of column parallelism a part
    of N, and of batches, which are heads. Where N has no two whole halves of blocks,
    columns are not divided.
    """
    cases = [RelatedCase("five-rows", "small", {"M": 5})]
    (output,) = definition.interface.outputs
    bounds = {output: SUMS_REORDERED}
    shared = [Relation("k-shards-add-up", _k_shards, cases)]
    if "A" in definition.interface.inputs:
        axes = ["batch_size", "M", "N"]
        return [
            reordered("batches-rows-and-columns-reversed", axes, bounds, cases),
            Relation("scales-exchanged", _exchanged, cases),
            reordered("shards-concatenate", axes[::2], bounds, cases, last_half_twice),
            *shared,
        ]
    relations = [
        reordered("rows-reversed", ["M"], bounds, cases),
        Relation("k-blocks-reversed", _blocks_reversed, cases),
        Relation("factor-moved-to-the-weight", _moved, cases),
        *shared,
    ]
    if definition.axes["N"] % (2 * _BLOCK) == 0:
        relations.append(Relation("n-shards-exchanged", _n_shards, cases))
    return relations


def _k_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Add the products of two parts of K: the other part's activations are zeros."""
    (output,) = subject.whole
    name = "A" if "A" in subject.inputs else "input"
    length = subject.definition.axes["K"]
    cut = max(length // 3 // _BLOCK, 1) * _BLOCK if length > _BLOCK else length // 3
    total = torch.zeros_like(subject.whole[output], dtype=torch.float64)
    for part in (slice(0, cut), slice(cut, None)):
        # float8 has no arithmetic; the code of zero is zero
        part_only = torch.zeros_like(subject.inputs[name].view(torch.uint8))
        part_only[..., part] = subject.inputs[name].view(torch.uint8)[..., part]
        shard = {**subject.inputs, name: part_only.view(torch.float8_e4m3fn)}
        total += subject.run(shard)[output]
    yield Claim(output, total, subject.whole[output].double(), PARTS_ADDED)


def _exchanged(subject: RelatedCalls) -> Iterator[Claim]:
    """Exchange the scales: only their product matters."""
    a, b = subject.inputs["A_scale"], subject.inputs["B_scale"]
    actual = subject.run({**subject.inputs, "A_scale": b, "B_scale": a})
    yield from alike(subject.whole, actual, {"C": SUMS_REORDERED})


def _blocks_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the blocks of K in reverse, in codes and scales."""
    inputs = subject.inputs
    blocks = subject.definition.axes["num_k_blocks"]
    order = torch.arange(blocks - 1, -1, -1)
    places = torch.arange(blocks * _BLOCK).view(blocks, _BLOCK)[order].flatten()
    other = {name: select(inputs[name], 1, places) for name in ("input", "weight")}
    for name in ("input_scale", "weight_scale"):
        other[name] = select(inputs[name], 1, order)
    yield from alike(subject.whole, subject.run(other), {"out": SUMS_REORDERED})


def _moved(subject: RelatedCalls) -> Iterator[Claim]:
    """Divide the scales of the input by 4, multiply those of the weight by 4."""
    other = {
        **subject.inputs,
        "input_scale": subject.inputs["input_scale"] / 4.0,
        "weight_scale": subject.inputs["weight_scale"] * 4.0,
    }
    yield from alike(subject.whole, subject.run(other), {"out": _POWERS})


def _n_shards(subject: RelatedCalls) -> Iterator[Claim]:
    """Exchange the halves of the weight's rows: the output's columns follow."""
    inputs, blocks = subject.inputs, subject.definition.axes["num_n_blocks"]
    half = torch.arange(blocks).roll(blocks // 2)
    places = torch.arange(blocks * _BLOCK).view(blocks, _BLOCK)[half].flatten()
    other = {
        **inputs,
        "weight": select(inputs["weight"], 0, places),
        "weight_scale": select(inputs["weight_scale"], 0, half),
    }
    expected = select(subject.whole["out"], 1, places)
    yield from alike({"out": expected}, subject.run(other), {"out": SUMS_REORDERED})
