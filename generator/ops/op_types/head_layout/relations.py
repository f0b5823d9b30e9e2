"""Relations of moving heads: tokens and heads stand for themselves, and all bits stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "bits are copied, none is computed")


def layout_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a definition's kind."""
    cases = [RelatedCase("five-tokens", "small", {"num_tokens": 5})]
    bounds = dict.fromkeys(definition.interface.outputs, _SAME)
    every = [
        reordered("tokens-reversed", ["num_tokens"], bounds, cases),
        in_two_parts("tokens-in-two", "num_tokens", bounds, cases),
    ]
    if "qkv" in definition.interface.inputs:
        return [*every, Relation("together-again", _together, cases)]
    every.append(reordered("heads-reversed", ["num_heads"], bounds, cases))
    if "x" in definition.interface.inputs:
        back = Relation("and-back", _back, cases, _inverse_of(definition))
        return [*every, back]
    return every


def _inverse_of(definition: Definition) -> Callable[[Definition], bool]:
    def accepts(other: Definition) -> bool:
        same = other.axes == definition.axes
        return same and other.interface != definition.interface

    return accepts


def _together(subject: RelatedCalls) -> Iterator[Claim]:
    """Write the heads of q, k and v one after the other: the fused rows."""
    parts = [subject.whole[name].flatten(1) for name in ("q", "k", "v")]
    yield Claim("q, k, v", torch.cat(parts, dim=1), subject.inputs["qkv"], _SAME)


def _back(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn the answer back by the other definition."""
    again = subject.other()({"x": subject.whole["output"]})["output"]
    yield Claim("output", again, subject.inputs["x"], _SAME)
