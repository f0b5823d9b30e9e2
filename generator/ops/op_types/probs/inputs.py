"""Rows of logits and probabilities, with ties, zeros and every temperature."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.sampling.heads import falling_probabilities
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def row_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return a case's rows, float32 [batch_size, vocab_size], and their settings.

    `rows` of the case gives each row's distribution and setting: `normal` and `high` are
    random logits of mean 0 and 500, `masked` has minus infinity for every other token,
    `alike` is one value throughout. All others are probabilities that end in a tail of
    two values; as logits these are their units of 2^-24.
    """
    source, setting = definition.interface.input_specs.items()
    # a workload has settings of its own
    usual = "normal" if source[0] == "logits" else "half"
    rows = case.params.get("rows", ((usual, 1.0),) * case.axes["batch_size"])
    vocab_size = definition.axes["vocab_size"]
    inputs = torch.stack(
        [
            _row(name, vocab_size, source[0], stream.child(str(place)))
            for place, (name, _) in enumerate(rows)
        ]
    )
    settings = [value for _, value in rows]
    dtype = getattr(torch, setting[1].dtype)
    return {source[0]: inputs, setting[0]: torch.tensor(settings, dtype=dtype)}


def _row(name: str, vocab_size: int, source: str, stream: Stream) -> torch.Tensor:
    if name in ("normal", "high", "masked"):
        row = stream.values((vocab_size,), 3.0) + (500.0 if name == "high" else 0.0)
        if name == "masked":
            row[::2] = -torch.inf
        return row
    if name == "alike":
        return torch.full((vocab_size,), 2.0)
    order = stream.permutation(vocab_size)
    falling = falling_probabilities(name, vocab_size)
    if source == "logits":
        falling = falling * 2.0**24
    return torch.empty(vocab_size).index_copy_(0, order, falling)
