"""Rounds that differ from another in one row, or one element, of one input.

A solution that knows earlier inputs by some of their values, or by some inputs, returns the
answer to these for those. Of an input in bfloat16 any element may be that of other values.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from kernel_judge.inputs.memory import tensor_bytes

if TYPE_CHECKING:
    from generator.evaluation.rounds import Round

# a case of several rows, whose inputs are made and compared in no time
_MOST_BYTES = 8 << 20


def neighbours(
    rounds: Sequence[tuple[Round, Round]], draw: random.Random
) -> Iterator[Round]:
    """Yield rounds beside the first of a pair, each with a row or an element of the second.

    `rounds` are two of each case. Of the largest case that is small each input in bfloat16
    is asked with another row, one of a single axis with other values, and with another
    element.
    """
    few = [two for two in rounds if 0 < _bytes(two[0]) <= _MOST_BYTES]
    if not few or few[0][0].subject.op.policies:
        return
    first, second = max(few, key=lambda two: _bytes(two[0]))
    for name, value in first.inputs.items():
        other = second.inputs[name]
        if not isinstance(value, torch.Tensor) or value.dtype != torch.bfloat16:
            continue
        if value.shape != other.shape or not value.numel():
            continue
        rows = value.reshape(-1, value.shape[-1] if value.dim() else 1)
        place = draw.randrange(len(rows)), draw.randrange(rows.shape[-1])
        for where in (place[:1], place):
            changed = rows.clone()
            changed[where] = other.reshape(rows.shape)[where]
            values = {**first.inputs, name: changed.view(value.shape)}
            one = replace(first, values=values)
            if not one.trial.broken_constraints():
                yield one


def _bytes(one: Round) -> int:
    return tensor_bytes(one.subject.definition, one.case)
