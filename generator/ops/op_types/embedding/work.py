"""The work of an embedding: the rows that tokens name, each once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from generator.ops.work import Work, size_of, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return the bytes of the ids and of the rows within the vocabulary's part."""
    ids, weight = inputs["input_ids"], inputs["weight"]
    start = int(inputs.get("vocab_start") or 0)
    local = ids[(ids >= start) & (ids < start + len(weight))]
    rows = len(torch.unique(local)) * weight.shape[1] * weight.dtype.itemsize
    return Work(size_of(ids) + rows, written(definition, axes, inputs))
