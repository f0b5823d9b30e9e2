"""Relations of adapters: tokens are for themselves, slots are names, factors are linear."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
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
        Tolerance(rtol=8e-3, atol=4e-5, nmse=1e-6),
        "float32 sums in another order, 2e-5 on either side where they cancel; both round "
        "once, to neighbours at most: 2^-7, and that is rare",
    )
}


def adapter_relations(definition: Definition) -> list[Relation]:
    """Return the relations of one step of adapters."""
    axes = {"num_tokens": 7, "num_adapters": 3}
    cases = [RelatedCase("seven-tokens", "small", axes, {"kind": "without"})]
    every = [
        reordered("tokens-reversed", ["num_tokens"], _ALIKE, cases),
        in_two_parts("tokens-in-two", "num_tokens", _ALIKE, cases),
        reordered("rank-reversed", ["rank"], _ALIKE, cases),
        Relation("adapters-renumbered", _renumbered, cases),
    ]
    features = (
        "out_features" if "base" in definition.interface.inputs else "in_features"
    )
    every.append(reordered("features-reversed", [features], _ALIKE, cases))
    if features == "out_features":
        every.append(Relation("factor-in-the-rows", _factor, cases))
    return every


def _renumbered(subject: RelatedCalls) -> Iterator[Claim]:
    """Give the adapters other numbers, in what is loaded and in the slots."""
    inputs = subject.inputs
    last = len(inputs["weights"]) - 1
    turned: dict[str, torch.Tensor] = {
        n: inputs[n].flip(0).contiguous()
        for n in ("weights", "scalings")
        if n in inputs
    }
    slots = torch.where(inputs["slots"] < 0, inputs["slots"], last - inputs["slots"])
    actual = subject.run({**inputs, **turned, "slots": slots})
    yield from alike(subject.whole, actual, _ALIKE)


def _factor(subject: RelatedCalls) -> Iterator[Claim]:
    """Halve the factors and double the rows."""
    inputs = subject.inputs
    other = {"scalings": inputs["scalings"] / 2.0, "x": 2.0 * inputs["x"]}
    yield from alike(subject.whole, subject.run({**inputs, **other}), _ALIKE)
