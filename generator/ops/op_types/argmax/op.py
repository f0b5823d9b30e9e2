"""argmax: the token of each row's largest logit, the first one where several tie.

PyTorch documents that its argmax takes the first; engines call it for greedy sampling.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.limit_cases import past_limits
from generator.ops.op_types.argmax.relations import argmax_relations
from kernel_judge.comparison.tolerance import EXACT, Override
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = (Override("tokens", EXACT, "tokens are numbers, of which one is right"),)
_KINDS = (
    *("normal", "tied", "near", "last", "first"),
    *("masked", "negative", "twice", "infinite", "hopeless"),
)


def cases(definition: Definition) -> list[Case]:
    """Return ordinary rows, and rows whose largest logit ties or stands at an edge."""
    return [
        Case("one-row", "small", {"batch_size": 1}, {"kinds": ("normal",)}),
        Case("ties", "small", {"batch_size": 4}, {"kinds": ("tied", "twice")}),
        Case("edges", "small", {"batch_size": 4}, {"kinds": ("last", "first")}),
        Case("near-ties", "small", {"batch_size": 3}, {"kinds": ("near",)}),
        Case(
            "infinite", "small", {"batch_size": 4}, {"kinds": ("infinite", "hopeless")}
        ),
        Case(
            "masked-and-negative",
            "small",
            {"batch_size": 4},
            {"kinds": ("masked", "negative")},
        ),
        Case("batch", "medium", {"batch_size": 11}, {"kinds": _KINDS}),
        past_limits("batch_size", 139, {"kinds": _KINDS}),
        Case("long-batch", "large", {"batch_size": 256}, {"kinds": _KINDS}),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return logits float32 [batch_size, vocab_size]; rows are of the kinds in turn."""
    rows, size = case.axes["batch_size"], definition.axes["vocab_size"]
    kinds = case.params["kinds"]
    logits = stream.child("logits").matrix(rows, size, 3.0, torch.float32)
    places = stream.child("places").integers(1, size - 1, 2 * rows)
    for row in range(rows):
        one, other = places[2 * row], places[2 * row + 1]
        _shape(logits[row], kinds[row % len(kinds)], one, other)
    return {"logits": logits}


def _shape(row: torch.Tensor, kind: str, one: int, other: int) -> None:
    """Make one row of a kind, in place; its largest logit is at one of two places."""
    peak = 12.0
    if kind == "tied":
        # all values are among a few: many tie for the largest
        row.copy_(row.clamp(-2.0, 2.0).round())
    elif kind == "twice":
        row[one], row[other] = peak, peak
    elif kind == "near":
        # neighbours: one number in bfloat16, and so are their float16 forms
        row[one], row[other] = peak, peak + 2.0**-20
    elif kind in ("last", "first"):
        row[-1 if kind == "last" else 0] = peak
    elif kind == "masked":
        row[row > 0.0] = -torch.inf
        row[one] = -1e-3
    elif kind == "negative":
        row.sub_(100.0)
    elif kind == "infinite":
        row[one], row[other] = torch.inf, torch.inf
    elif kind == "hopeless":
        row.fill_(-torch.inf)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the first of each row's largest, int64 [batch_size], by a stable sort."""
    order = torch.sort(inputs["logits"].double(), descending=True, stable=True)
    return order.indices[:, 0]


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's reduction, which greedy sampling of engines calls."""
    return (Backend("argmax"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return torch.argmax of the rows."""
    return torch.argmax(inputs["logits"], dim=-1)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=argmax_relations,
    tolerances=TOLERANCES,
    kernels={"pytorch": Kernel(pytorch_backends, pytorch_ground_truth)},
)
