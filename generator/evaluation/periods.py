"""Answers to slices that repeat: where they repeat as well, one period of them says all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from kernel_judge.inputs.repeated import DISTINCT
from kernel_judge.inputs.trial import same_bits

if TYPE_CHECKING:
    from generator.evaluation.rounds import Round
    from kernel_judge.definition import Case, TensorSpec


def with_expected(
    one: Round, answer: tuple[Any, ...]
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return an answer, filled inputs behind its outputs, and what is expected of it.

    Of slices that repeat and are answered alike these are the distinct ones, unless a
    policy judges an output by all inputs.
    """
    if one.case.repeats and not one.subject.op.policies:
        names = (*one.subject.interface.output_specs, *one.filled)
        specs = [one.subject.specs[name] for name in names]
        period = _one_period(answer, specs, one.case)
        if period is not None:
            return period, one.distinct.expected
    return answer, one.expected


def _one_period(
    answer: Sequence[Any], specs: Sequence[TensorSpec], case: Case
) -> tuple[Any, ...] | None:
    """Return the distinct slices of an answer, None where it has others.

    Slice i is held to slice i - 61 by its bits, so that what holds for one period holds
    for all of them. Values without the axis are returned as they are.
    """
    firsts = []
    length = case.axes[case.repeats]
    for value, spec in zip(answer, specs, strict=True):
        axes = spec.shape or ()
        if axes.count(case.repeats) > 1:
            return None
        if case.repeats in axes:
            at, rest = axes.index(case.repeats), length - DISTINCT
            if not isinstance(value, torch.Tensor) or value.shape[at] != length:
                return None
            later, earlier = value.narrow(at, DISTINCT, rest), value.narrow(at, 0, rest)
            if not same_bits(later, earlier):
                return None
            value = value.narrow(at, 0, DISTINCT)
        firsts.append(value)
    return tuple(firsts)
