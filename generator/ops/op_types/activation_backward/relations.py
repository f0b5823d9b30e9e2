"""Relations of gradients of activations: rows for themselves, linear in the gradient."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.gradient_relations import gradient_scaled
from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_ALIKE = Bound(
    Tolerance(rtol=8e-3, atol=4e-6, nmse=1e-6),
    "the same float32 operations, maybe of other instructions: both sides round once, to "
    "neighbours at most: 2^-7, and that is rare; where terms cancel 2^-24 of them is left",
)
_SYMMETRIC = Bound(
    Tolerance(rtol=8e-3, atol=3e-2, nmse=4e-5),
    "the slopes at x and -x add up to 1; either gradient is rounded to bfloat16, by 2^-8 "
    "of itself, and so of 1.13 times a gradient of 5 at most",
)


def gradient_relations(definition: Definition) -> list[Relation]:
    """Return the relations of the gradient of an activation."""
    cases = [RelatedCase("five-rows", "small", {"num_tokens": 5})]
    bounds = {"grad_input": _ALIKE}
    return [
        reordered("rows-reversed", ["num_tokens"], bounds, cases),
        in_two_parts("rows-in-two", "num_tokens", bounds, cases),
        gradient_scaled(cases),
        Relation("slopes-of-both-signs", _both_signs, cases),
    ]


def _both_signs(subject: RelatedCalls) -> Iterator[Claim]:
    """Negate the input: slopes of x·s(x), with s(x) + s(-x) = 1, add up to 1."""
    inputs = subject.inputs
    grad, x = inputs["grad_output"], inputs["input"]
    size = grad.shape[1]
    gated = x.shape[1] > size
    other = torch.cat((-x[:, :size], x[:, size:]), dim=1) if gated else -x
    actual = subject.run({**inputs, "input": other})["grad_input"]
    total = (actual.float() + subject.whole["grad_input"].float())[:, :size]
    expected = grad.float() * (x[:, size:].float() if gated else 1.0)
    yield Claim("grad_input", total, expected, _SYMMETRIC)
