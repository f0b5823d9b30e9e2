"""Relations of sums over experts: rows are for themselves, experts have no order."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from generator.ops.row_relations import in_two_parts, reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import Bound, Claim, RelatedCalls, RelatedCase, Relation

_SAME = Bound(EXACT, "each sum is of the same numbers in the same order")
_ORDER = Bound(
    Tolerance(rtol=8e-3, atol=8e-6, nmse=1e-5),
    "a float32 sum in another order, rounded once: to neighbours at most, 2^-7 apart",
)
_SCALED = Bound(EXACT, "a factor of -2 changes sign and exponent alone")


def sum_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a sum over experts."""
    cases = [RelatedCase("five-tokens", "small", {"num_tokens": 5}, {"factor": 2.5})]
    same, order = {"output": _SAME}, {"output": _ORDER}
    return [
        reordered("tokens-reversed", ["num_tokens"], same, cases),
        in_two_parts("tokens-in-two", "num_tokens", same, cases),
        reordered("columns-reversed", ["hidden_size"], same, cases),
        reordered("experts-reversed", ["topk"], order, cases),
        Relation("factor-scaled", _scaled, cases),
        Relation("one-expert-alone", _alone, cases),
    ]


def _scaled(subject: RelatedCalls) -> Iterator[Claim]:
    """Multiply the factor by -2."""
    factor = subject.inputs["routed_scaling_factor"]
    actual = subject.run({**subject.inputs, "routed_scaling_factor": -2.0 * factor})
    yield Claim("output", actual["output"], -2.0 * subject.whole["output"], _SCALED)


def _alone(subject: RelatedCalls) -> Iterator[Claim]:
    """Leave the last expert's rows alone, with a factor of 1: they are returned."""
    rows = torch.zeros_like(subject.inputs["expert_output"])
    rows[:, -1] = subject.inputs["expert_output"][:, -1]
    actual = subject.run({"expert_output": rows, "routed_scaling_factor": 1.0})
    yield Claim("output", actual["output"], rows[:, -1], _SAME)
