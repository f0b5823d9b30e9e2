"""Relations of losses: rows are for themselves, tokens have no order, logits may move."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SUMMED = Bound(
    Tolerance(rtol=1e-6, atol=1e-5, nmse=1e-10),
    "float32 sums of exponentials in another order: 2e-6 of the sum, and roundings of a "
    "log-sum-exp of 20",
)
_GRADIENT = Bound(
    Tolerance(rtol=8e-3, atol=1e-6, nmse=1e-6),
    "the same float32 operations, maybe of other instructions: both sides round once, to "
    "neighbours at most: 2^-7, and that is rare",
)


def loss_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a loss, or of its gradient."""
    cases = [RelatedCase("five-tokens", "small", {"num_tokens": 5})]
    outputs = definition.interface.outputs
    is_gradient = "grad_logits" in outputs
    bounds = dict.fromkeys(outputs, _GRADIENT if is_gradient else _SUMMED)
    another = gradient_scaled(cases, "grad_losses")
    if not is_gradient:
        another = Relation("tokens-renamed", _renamed, cases)
    return [
        reordered("rows-reversed", ["num_tokens"], bounds, cases),
        in_two_parts("rows-in-two", "num_tokens", bounds, cases),
        another,
    ]


def _renamed(subject: RelatedCalls) -> Iterator[Claim]:
    """Move all tokens by 7 places, and the labels that are asked with them."""
    logits, labels = subject.inputs["logits"], subject.inputs["labels"]
    moved = torch.where(labels < 0, labels, (labels + 7) % logits.shape[1])
    actual = subject.run({"logits": logits.roll(7, 1), "labels": moved})
    for name in ("losses", "lse"):
        yield Claim(name, actual[name], subject.whole[name], _SUMMED)
