"""Relations of causal convolutions: channels apart, sequences apart, split anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.row_relations import reordered
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
    "output": Bound(
        Tolerance(rtol=8e-3, atol=8e-6, nmse=1e-6),
        "the same products, maybe added in another order: both sides round once, to "
        "neighbours at most: 2^-7; sums that cancel from 16 have errors of 2^-24 of it",
    ),
    "new_conv_states": Bound(EXACT, "inputs are copied"),
}


def conv_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a prefill, or of a step."""
    if "cu_seqlens" in definition.interface.inputs:
        axes = {
            "total_tokens": 14,
            "num_seqs": 3,
            "len_cu_seqlens": 4,
            "num_slots": 5,
        }
        params = {"lengths": (2, 7, 5), "fresh": (1,), "std": 1.0}
        cases = [RelatedCase("three-sequences", "small", axes, params)]
        relations = [Relation("split-after-some-tokens", _split, cases)]
    else:
        axes = {"batch_size": 4, "num_slots": 6}
        cases = [RelatedCase("four-rows", "small", axes, {"padding": (2,), "std": 1.0})]
        relations = [reordered("batch-reversed", ["batch_size"], _ALIKE, cases)]
    return [
        *relations,
        reordered("channels-reversed", ["dim"], _ALIKE, cases),
        Relation("slots-permuted", _slots_permuted, cases),
    ]


def _split(subject: RelatedCalls) -> Iterator[Claim]:
    """Give each sequence's first tokens, then the others from the resulting pool."""
    inputs, state = subject.inputs, subject.inputs["conv_states"]
    starts, ends = inputs["cu_seqlens"][:-1].long(), inputs["cu_seqlens"][1:].long()
    cuts = (starts + ends + 1) // 2
    output = torch.empty_like(inputs["x"])
    goes_on = inputs["has_initial_state"]
    for first, last in ((starts, cuts), (cuts, ends)):
        rows = torch.cat([torch.arange(a, b) for a, b in zip(first, last, strict=True)])
        lengths = (last - first).cumsum(0)
        names = [name for name in ("b_gate", "c_gate", "x") if name in inputs]
        by_row: dict[str, Any] = {name: inputs[name][rows] for name in names}
        piece = {
            **inputs,
            **by_row,
            "conv_states": state,
            "cu_seqlens": torch.nn.functional.pad(lengths, (1, 0)).to(torch.int32),
            "has_initial_state": goes_on,
        }
        answer = subject.run(piece)
        output[rows], state = answer["output"], answer["new_conv_states"]
        goes_on = torch.ones_like(goes_on)
    yield from alike(
        subject.whole, {"output": output, "new_conv_states": state}, _ALIKE
    )


def _slots_permuted(subject: RelatedCalls) -> Iterator[Claim]:
    """Move the states to other slots of the pool; padding stays padding."""
    inputs = subject.inputs
    order = torch.arange(len(inputs["conv_states"])).roll(2)
    slots = inputs["cache_indices"]
    moved = order.argsort()[slots.long()].to(slots.dtype)
    permuted = {
        **inputs,
        "conv_states": inputs["conv_states"][order],
        "cache_indices": torch.where(slots < 0, slots, moved),
    }
    expected = {**subject.whole}
    expected["new_conv_states"] = expected["new_conv_states"][order]
    yield from alike(expected, subject.run(permuted), _ALIKE)
