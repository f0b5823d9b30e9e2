"""Relations of rotary embeddings in 8 bits: scales are factors, half a turn is a sign."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.op_types.rope_quantize.inputs import axes_of
from generator.ops.row_relations import reordered
from kernel_judge.comparison.tolerance import EXACT, Tolerance
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    RelatedCalls,
    RelatedCase,
    Relation,
)

_ALIKE = Bound(
    Tolerance(rtol=1.25e-1, atol=2e-3, nmse=1e-5),
    "the same float32 operations, maybe of other instructions: to neighbours at most, "
    "2^-3 apart, near ties alone",
)
_DOUBLED = Bound(
    Tolerance(rtol=0.0, atol=2e-3),
    "a factor of 2 moves the exponent alone, below 448; smaller values than 2^-6 are "
    "rounded in steps of 2^-9",
)
_SIGN = Bound(EXACT, "a cosine of -1 and a sine of 0 only change signs")
_LENGTHS = ((70, 5), (3, 3), (0, 0), (129, 1))
_PARTS = ("q_rope_out", "k_rope_out", "q_nope_out", "k_nope_out")


def quantised_relations(definition: Definition) -> list[Relation]:
    """Return the relations of a rotary embedding in 8 bits."""
    params = {"lengths": _LENGTHS, "scale_q": 3.0, "scale_kv": 5.0}
    axes = axes_of(definition, _LENGTHS, 50)
    rows = [RelatedCase("nine-rows", "small", axes, params)]
    alike = dict.fromkeys(definition.interface.outputs, _ALIKE)
    return [
        reordered("tokens-reversed", ["num_tokens"], alike, rows),
        Relation("scales-doubled", _doubled, rows),
        Relation("half-turn", _half_turn, rows),
    ]


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double both scales: what is not cut off doubles."""
    inputs = subject.inputs
    scales = {name: 2.0 * inputs[name] for name in ("quant_scale_q", "quant_scale_kv")}
    actual = subject.run({**inputs, **scales})
    for name in _PARTS:
        if name in actual:
            expected = 2.0 * subject.whole[name].float()
            yield Claim(name, actual[name].float(), expected, _DOUBLED)


def _half_turn(subject: RelatedCalls) -> Iterator[Claim]:
    """Rotate by 180 degrees instead of not at all: the rotary part changes its sign."""
    inputs = subject.inputs
    whole, half = (
        subject.run({**inputs, "cos_sin_cache": _constant(inputs, cos)})
        for cos in (1.0, -1.0)
    )
    for name in _PARTS:
        if name in whole:
            sign = -1.0 if "rope" in name else 1.0
            expected = sign * whole[name].float()
            yield Claim(name, half[name].float(), expected, _SIGN)


def _constant(inputs: Any, cos: float) -> torch.Tensor:
    cache = torch.zeros_like(inputs["cos_sin_cache"])
    cache[:, : cache.shape[1] // 2] = cos
    return cache
