"""Rows of logits, and what is done to them."""

from __future__ import annotations

from typing import Any

import torch

from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.memory import shape_of
from kernel_judge.inputs.seeded_inputs import Stream


def logits_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return logits float32 [batch_size, vocab_size] and what the definition has besides.

    Logits of a row differ from each other, and a few tokens that no grammar allows are
    minus infinity where the case says so. Counts are int32 of that shape: most tokens
    did not occur. Bits are all set in the second row, and none in the third.
    """
    lengths = {**definition.axes, **case.axes}
    rows, size = lengths["batch_size"], lengths["vocab_size"]
    logits = _distinct(rows, size, stream.child("logits"))
    logits += case.params.get("mean", 0.0)
    if case.params.get("masked"):
        logits[:, 1::5] = -torch.inf
    inputs: dict[str, Any] = {"logits": logits}
    for name, spec in definition.interface.input_specs.items():
        drawn = stream.child(name)
        shape = shape_of(spec, lengths)
        if name == "bitmask":
            inputs[name] = _bits(shape, drawn)
        elif name.endswith("_counts"):
            inputs[name] = _counts(shape, drawn) * case.params.get("times", 1)
        elif name == "scaling_penalties":
            chosen = _counts(shape, drawn) > 0
            inputs[name] = torch.where(
                chosen, _penalties(rows, 1.0, drawn)[:, None], 1.0
            )
        elif name == "logit_bias":
            chosen = _counts(shape, drawn)
            inputs[name] = torch.where(chosen > 0, 12.5 - 7.3 * chosen, 0.0)
        elif name != "logits":
            neutral = 1.0 if name == "repetition_penalties" else 0.0
            inputs[name] = _penalties(rows, neutral, drawn)
    return inputs


def _distinct(rows: int, size: int, stream: Stream) -> torch.Tensor:
    """Return bell-shaped values of which no two of a row are equal, float32."""
    places = torch.stack(
        [stream.child(f"row {row}").permutation(size) for row in range(rows)]
    )
    shares = (places.double() + 0.5) / size
    # a logistic distribution, 2 wide, and rows of other sums
    spread = 1.0 + 0.25 * (torch.arange(rows) % 3).double()
    return ((shares / (1.0 - shares)).log() * spread[:, None]).float()


def _counts(shape: tuple[int, ...], stream: Stream) -> torch.Tensor:
    drawn = stream.integer_tensor(0, 40, shape[0] * shape[1]).view(shape)
    # the first token and the last one occur in each row
    drawn[:, 0], drawn[:, -1] = 38, 39
    return (drawn - 35).clamp_min(0).to(torch.int32)


def _penalties(rows: int, neutral: float, stream: Stream) -> torch.Tensor:
    each = torch.tensor([0.3, 0.15, -0.2, 1.0, 0.0])
    start = stream.integers(0, 5, 1)[0]
    return neutral + each[(torch.arange(rows) + start) % len(each)]


def _bits(shape: tuple[int, ...], stream: Stream) -> torch.Tensor:
    halves = stream.integer_tensor(0, 2**16, 2 * shape[0] * shape[1])
    words = (halves[0::2] << 16 | halves[1::2]).view(shape)
    words[1:2], words[2:3] = 2**32 - 1, 0
    return (words - ((words >> 31) << 32)).to(torch.int32)
