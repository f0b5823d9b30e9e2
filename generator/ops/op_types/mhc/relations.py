"""Relations of hyper-connections: tokens and columns apart, streams of any name, linear."""

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
)

_SAME = Bound(
    Tolerance(rtol=1e-6, atol=1e-30), "the same operations of the same numbers"
)
_ROUNDED = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6),
    "float32 sums in another order: both sides round nearly the same value once, to "
    "neighbours at most: 2^-7, and that is rare",
)
_ALIKE = {
    "post_mix": _SAME,
    "comb_mix": _SAME,
    "layer_input": _ROUNDED,
    "out": _ROUNDED,
}
_DOUBLED = Bound(EXACT, "a factor of 2 changes exponents alone")
_KEPT = Bound(EXACT, "0 · x, 1 · a stream and 0 · the others")
_EVEN = Bound(
    Tolerance(rtol=0.0, atol=4e-7),
    "columns are divided last, by their sum and 1e-6, which takes 1e-6 of a sum that is "
    "about 1: four quotients are rounded by 2^-25 of themselves each, and their sum by 3e-7",
)


def mhc_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the definition's side of a layer."""
    cases = [RelatedCase("seven-tokens", "small", {"num_tokens": 7})]
    relations = [
        reordered("tokens-reversed", ["num_tokens"], _ALIKE, cases),
        in_two_parts("tokens-in-two", "num_tokens", _ALIKE, cases),
        reordered("columns-reversed", ["hidden_size"], _ALIKE, cases),
        Relation("streams-doubled", _doubled, cases),
    ]
    if "dot_mix" in definition.interface.inputs:
        return [*relations, Relation("columns-add-up-to-one", _even, cases)]
    return [
        *relations,
        Relation("streams-reversed", _reversed, cases),
        Relation("streams-kept", _kept, cases),
    ]


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the streams, and what the layer gave: sums of them are doubled."""
    inputs = subject.inputs
    names = {"x", "residual"} & set(inputs)
    answer = subject.run({**inputs, **{name: 2.0 * inputs[name] for name in names}})
    for name in {"layer_input", "out"} & set(answer):
        yield Claim(name, answer[name], 2.0 * subject.whole[name], _DOUBLED)


def _even(subject: RelatedCalls) -> Iterator[Claim]:
    """Add up each column of the mixes of streams: 1 and eps were their divisor."""
    sums = subject.whole["comb_mix"].double().sum(dim=1)
    yield Claim("comb_mix", sums, torch.full_like(sums, 1.0 / (1.0 + 1e-6)), _EVEN)


def _reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the streams in the opposite order, with their shares: of rows and columns."""
    inputs = subject.inputs
    flipped = {
        "residual": inputs["residual"].flip(1),
        "post_layer_mix": inputs["post_layer_mix"].flip(1),
        "comb_res_mix": inputs["comb_res_mix"].flip(1, 2),
    }
    out = subject.run({**inputs, **flipped})["out"]
    yield Claim("out", out, subject.whole["out"].flip(1), _ROUNDED)


def _kept(subject: RelatedCalls) -> Iterator[Claim]:
    """Take nothing of the layer, and each stream for itself."""
    inputs = subject.inputs
    one = torch.eye(inputs["residual"].shape[1]).expand_as(inputs["comb_res_mix"])
    none = torch.zeros_like(inputs["post_layer_mix"])
    apart = {**inputs, "post_layer_mix": none, "comb_res_mix": one.contiguous()}
    yield Claim("out", subject.run(apart)["out"], inputs["residual"], _KEPT)
