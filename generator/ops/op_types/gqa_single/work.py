"""The work of attention over one sequence: every key and value is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.attention.work import pairs, products
from generator.ops.work import Work, read_whole, written
from kernel_judge.definition import Definition


def work(
    definition: Definition, axes: Mapping[str, int], inputs: Mapping[str, Any]
) -> Work:
    """Return operations of the pairs that count, and the bytes of all inputs."""
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    queries = len(q) if q.dim() == 3 else 1
    causal = queries > 1 and not definition.constants.get("noncausal", False)
    count = pairs([queries], [len(k)], causal)
    flops = products(count, q.shape[-2], q.shape[-1], v.shape[-1])
    dtype = definition.interface.input_specs["k"].dtype
    return Work(read_whole(inputs), written(definition, axes, inputs), {dtype: flops})
