"""Comparing places of tokens: those of one expert may stand in any order."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from kernel_judge.comparison.compare import FAILED, PASSED, Comparison
from kernel_judge.comparison.policy import Question


class SortedByExpert:
    """sorted_token_ids are right where each expert's blocks have its tokens, in any order.

    Kernels count places up with atomics, so that each call may have another order.
    """

    def judge(self, actual: Any, expected: Any, question: Question) -> Comparison:
        """Return the verdict on which places each expert has."""
        findings = tuple(_differences(actual, expected, question))[:5]
        return Comparison(FAILED if findings else PASSED, findings)


def _differences(actual: Any, expected: Any, question: Question) -> list[str]:
    if not isinstance(actual, torch.Tensor) or actual.shape != expected.shape:
        shape = getattr(actual, "shape", type(actual).__name__)
        return [f"shape {shape}, expected {tuple(expected.shape)}"]
    if actual.dtype != torch.int32:
        return [f"dtype {actual.dtype}, expected torch.int32"]
    bounds = bounds_of(question)
    every = []
    for bucket, (begin, end) in enumerate(pairwise(bounds)):
        sides = (
            side[begin:end].cpu().long().sort().values for side in (actual, expected)
        )
        one, other = sides
        if not torch.equal(one, other):
            wrong = int((one != other).sum())
            where = "those of no expert here" if bucket == 0 else f"expert {bucket - 1}"
            where = "behind all experts" if bucket == len(bounds) - 2 else where
            every.append(f"{where}, [{begin}:{end}]: {wrong} places differ")
    return every


def bounds_of(question: Question) -> list[int]:
    """Return where each bucket begins, the end of the last, and the end of all places."""
    experts = question.definition.constants["num_experts"]
    block = question.definition.constants["block_size"]
    ids = question.inputs["topk_ids"].flatten().tolist()
    counts = [0] * (experts + 1)
    for expert in ids:
        counts[expert + 1 if 0 <= expert < experts else 0] += 1
    bounds = [0]
    for count in counts:
        bounds.append(bounds[-1] + -(-count // block) * block)
    return [*bounds, len(ids) + (experts + 1) * (block - 1)]
