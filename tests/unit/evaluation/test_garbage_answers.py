"""Whatever bytes a solution answers with, the judge refuses them and raises nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from generator.dataset.definition import LoadedDefinition
from generator.evaluation.judge import Judge
from generator.evaluation.rounds import Round, rounds_of
from generator.evaluation.verdict import PASSED
from generator.ops.registry import op_packages
from generator.rules.load import load_definitions
from kernel_judge.definition import TensorSpec
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from tests.builders import CPU
from tools.evaluate_mutants import InProcess

RANDOM, MOST_BYTES = 5, 1 << 20


@cache
def first_definitions() -> dict[str, LoadedDefinition]:
    """Return op_type → the first definition of each."""
    loaded = load_definitions(Path()).definitions
    return {one.op_type: one for one in reversed(loaded)}


class Garbage(InProcess):
    """Answer each call with extremes of the declared kind, or with random bits."""

    def __init__(self, number: int) -> None:
        super().__init__(lambda *_: None)
        self._number = number

    def call(self, slot: int, layout: Any, **_: Any) -> None:
        specs, axes = self._declared
        self._outputs = tuple(self._value(spec, axes) for spec in specs.values())

    def _value(self, spec: TensorSpec, axes: Mapping[str, int]) -> Any:
        number = self._number
        if spec.shape is None:
            return (float("nan"), float("inf"), -1, 2**63, 1e308, 0.0)[number]
        t = torch.empty(shape_of(spec, axes), dtype=dtype_of(spec.dtype))
        if number == RANDOM:
            bits = t.reshape(-1).view(torch.uint8)
            bits.copy_(torch.randint(0, 256, bits.shape, dtype=torch.uint8))
            return bits.view(t.dtype).view(t.shape)
        if t.dtype == torch.bool or t.dtype.itemsize == 1:
            t.view(torch.uint8).fill_((0, 0x7F, 0x80, 0xFF, 2)[number])
            return t
        if t.dtype.is_floating_point:
            return t.fill_((0.0, math.nan, math.inf, -math.inf, -1.0)[number])
        info = torch.iinfo(t.dtype)
        return t.fill_((info.min, info.max, -1, 0, 7)[number])


@pytest.mark.parametrize("op_type", sorted(op_packages()))
def test_garbage_is_refused(op_type: str) -> None:
    asked = rounds_of(first_definitions()[op_type], [], Path(), CPU, 7)
    # one case of few bytes, and of each relation one
    fitting = [of_case for of_case in asked.rounds if size(of_case[1][0]) < MOST_BYTES]
    few = sorted(fitting, key=lambda of_case: size(of_case[1][0]))[-1:]
    small = [(r, one) for r, one in asked.relations if size(one) < MOST_BYTES]
    relations = {relation.name: (relation, one) for relation, one in small}
    if not few and not relations:
        pytest.skip("all of its cases are large")
    asked = replace(asked, rounds=few, relations=list(relations.values()))
    for number in (1, 3, RANDOM):
        verdicts = Judge(Garbage(number), asked, CPU, False, 5).judge()
        refused = [one for one in verdicts if one.verdict != PASSED]
        assert refused
        assert all(one.reason.isprintable() for one in refused)


def size(one: Round) -> int:
    return tensor_bytes(one.trial.definition, one.case)
