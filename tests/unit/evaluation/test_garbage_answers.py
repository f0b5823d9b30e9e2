"""Whatever bytes a solution answers with, the judge refuses them and raises nothing else."""

from __future__ import annotations

import random
from collections.abc import Iterator
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
from kernel_judge.inputs.memory import dtype_of, shape_of, tensor_bytes
from tests.builders import CPU
from tools.evaluate_mutants import InProcess

_MOST_BYTES = 1 << 20
_EXTREMES: dict[bool, tuple[Any, ...]] = {
    True: (0.0, float("nan"), float("inf"), -float("inf"), -1.0),
    False: ("least", "greatest", -1, 0, 7),
}


@cache
def first_definitions() -> dict[str, LoadedDefinition]:
    """Return op_type → the first definition of each."""
    loaded = load_definitions(Path()).definitions
    return {one.op_type: one for one in reversed(loaded)}


def answers(one: Round) -> Iterator[tuple[Any, ...]]:
    """Yield outputs of the declared kind: extremes throughout, then random bits."""
    axes = {**one.subject.definition.axes, **one.case.axes}
    specs = one.subject.interface.output_specs.values()
    tensors = [
        torch.empty(shape_of(s, axes), dtype=dtype_of(s.dtype))
        for s in specs
        if s.shape is not None
    ]
    scalars = iter((float("nan"), float("inf"), -1, 2**63, 1e308, 0.0))
    for number in range(5):
        for t in tensors:
            extreme = _EXTREMES[t.dtype.is_floating_point][number]
            if t.dtype == torch.bool or t.dtype.itemsize == 1:
                t.view(torch.uint8).fill_((0, 0x7F, 0x80, 0xFF, 2)[number])
            elif isinstance(extreme, str):
                info = torch.iinfo(t.dtype)
                t.fill_(info.min if extreme == "least" else info.max)
            else:
                t.fill_(extreme)
        yield tuple(tensors)
    for t in tensors:
        if t.numel():
            bits = t.view(torch.uint8) if t.dim() else t.view(1).view(torch.uint8)
            bits.copy_(torch.randint(0, 256, bits.shape, dtype=torch.uint8))
    left = iter(tensors)
    yield tuple(next(scalars) if s.shape is None else next(left) for s in specs)


@pytest.mark.parametrize("op_type", sorted(op_packages()))
def test_garbage_is_refused(op_type: str) -> None:
    definition = first_definitions()[op_type]
    asked = rounds_of(definition, [], Path(), CPU, 7)
    fitting = [
        (name, rounds)
        for name, rounds in asked.rounds
        if tensor_bytes(rounds[0].trial.definition, rounds[0].case) <= _MOST_BYTES
    ]
    for name, rounds in random.Random(3).sample(fitting, min(2, len(fitting))):
        verdicts = []
        for values in answers(rounds[0]):
            session = InProcess(lambda *_, values=values: values)
            judge = Judge(session, asked.of_case(name), CPU, False, 5, until_wrong=True)
            verdicts += judge.judge()
        refused = [one for one in verdicts if one.verdict != PASSED]
        assert refused, name
        assert all(one.reason.isprintable() for one in refused)
