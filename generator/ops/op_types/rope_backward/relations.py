"""Relations of turned gradients: linear, lengths stay, no angle is no turn."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "the same products and sums of the same numbers")
_BACK = Bound(
    Tolerance(rtol=1.2e-2, atol=3.2e-2, nmse=1.6e-5),
    "two roundings to bfloat16 of values up to 4 on the way, 2^-8 of the larger of a pair",
)


def turn_relations(definition: Definition) -> list[Relation]:
    """Return the relations of gradients that turn back."""
    cases = [RelatedCase("five-tokens", "small", {"num_tokens": 5}, {"first": 3})]
    bounds = dict.fromkeys(definition.interface.outputs, _SAME)
    return [
        reordered("tokens-reversed", ["num_tokens"], bounds, cases),
        in_two_parts("tokens-in-two", "num_tokens", bounds, cases),
        reordered("query-heads-reversed", ["num_qo_heads"], bounds, cases),
        reordered("key-heads-reversed", ["num_kv_heads"], bounds, cases),
        Relation("scaled-and-unturned", _scaled, cases),
        Relation("there-and-back", _there, cases),
    ]


_PAIRS = (("grad_q_in", "grad_q"), ("grad_k_in", "grad_k"))


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Give -2 times the gradients, and then angles of 0."""
    inputs = subject.inputs
    doubled = {name: -2.0 * inputs[name] for _, name in _PAIRS}
    actual = subject.run({**inputs, **doubled})
    for output, _ in _PAIRS:
        yield Claim(output, actual[output], -2.0 * subject.whole[output], _SAME)
    cos, sin = torch.ones_like(inputs["cos"]), torch.zeros_like(inputs["sin"])
    same = subject.run({**inputs, "cos": cos, "sin": sin})
    for output, name in _PAIRS:
        yield Claim(output, same[output], inputs[name], _SAME)


def _there(subject: RelatedCalls) -> Iterator[Claim]:
    """Turn what turned back by the same angles the other way: it is where it was."""
    inputs = subject.inputs
    turned = {name: subject.whole[output] for output, name in _PAIRS}
    actual = subject.run({**inputs, **turned, "sin": -inputs["sin"]})
    for output, name in _PAIRS:
        yield Claim(output, actual[output], inputs[name], _BACK)
