"""Relations of quantising: rows and blocks are independent; signs and powers carry over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from generator.ops.op_types.quantization.formats import format_of
from generator.ops.row_relations import reordered, select
from kernel_judge.comparison.tolerance import EXACT
from kernel_judge.definition import Definition
from kernel_judge.relation import (
    Bound,
    Claim,
    Outputs,
    RelatedCalls,
    RelatedCase,
    Relation,
    alike,
)

_SAME = Bound(EXACT, "the same arithmetic on the same elements")
_SIGN = Bound(EXACT, "a sign changes no rounding to the nearest, ties to even")
_POWER = Bound(EXACT, "a power of two changes exponents alone")
# 0x88 as int8: the signs of both codes
_BOTH_SIGNS = -120


def quantization_relations(definition: Definition) -> list[Relation]:
    """Return the relations of quantising, or of the way back."""
    cases = [RelatedCase("five-rows", "small", {"M": 5})]
    bounds = dict.fromkeys(definition.interface.outputs, _SAME)
    return [
        reordered("rows-reversed", ["M"], bounds, cases),
        Relation("blocks-reversed", _blocks_reversed, cases),
        Relation("negated", _negated, cases),
        Relation("doubled", _doubled, cases),
    ]


def _blocks_reversed(subject: RelatedCalls) -> Iterator[Claim]:
    """Take the blocks of each row in reverse."""
    actual = subject.run(_turned(subject.definition, subject.inputs))
    expected = _turned(subject.definition, subject.whole)
    yield from alike(expected, actual, dict.fromkeys(expected, _SAME))


def _turned(definition: Definition, tensors: Any) -> dict[str, Any]:
    count = definition.axes["num_blocks"]
    moved = dict(tensors)
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor):
            places = torch.arange(value.shape[1]).view(count, -1).flip(0).flatten()
            moved[name] = select(value, 1, places)
    return moved


def _negated(subject: RelatedCalls) -> Iterator[Claim]:
    """Change all signs: codes and values change theirs, scales stay."""
    actual = subject.run(_other_sign(subject.definition, subject.inputs))
    expected = _other_sign(subject.definition, subject.whole)
    yield from alike(expected, actual, dict.fromkeys(expected, _SIGN))


def _other_sign(definition: Definition, tensors: Any) -> dict[str, Any]:
    negated = dict(tensors)
    for name in {"x", "input", "output", "x_q", "quantized"} & set(tensors):
        value = tensors[name]
        if value.dtype == torch.int8:
            negated[name] = value ^ _BOTH_SIGNS
        else:
            negated[name] = (-value.float()).to(value.dtype)
    return negated


def _doubled(subject: RelatedCalls) -> Iterator[Claim]:
    """Double the values: scales double, beside a global scale that is halved nothing."""
    form, inputs = format_of(subject.definition), dict(subject.inputs)
    expected: Outputs = dict(subject.whole)
    scales = "x_s" if "x_s" in expected else "scales"
    if form.dequantises:
        expected["output"] = 2.0 * expected["output"]
        if form.is_mx:
            inputs["scales"] = inputs["scales"] + 1
        else:
            inputs["global_scale"] = 2.0 * inputs["global_scale"]
    else:
        name = next(iter(inputs))
        inputs[name] = 2.0 * inputs[name]
        if form.is_global:
            inputs["global_scale"] = inputs["global_scale"] / 2.0
        elif form.is_mx:
            expected[scales] = expected[scales] + 1
        else:
            expected[scales] = 2.0 * expected[scales]
    yield from alike(expected, subject.run(inputs), dict.fromkeys(expected, _POWER))
