"""Workloads of routing: the token counts of a captured router's product."""

from __future__ import annotations

import random
from collections.abc import Iterator

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, distinct, fits_a_blob
from generator.ops.workloads.traffic import CHUNK, Step, batches

# rows of a table: of the tokens that appear, since the whole vocabulary fits no blob
_KNOWN = 512


def routed_tokens(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return as many tokens as the product had rows; where a table is read, that too."""
    tokens = captured.axes["M"]
    axes = {"num_tokens": tokens, "vocab_size": _KNOWN}
    tensors: dict[str, list[int]] = {}
    if "tid2eid" in spec.inputs:
        top_k, experts = spec.const("topk"), spec.const("num_experts")
        rows = [distinct(top_k, experts, rng) for _ in range(_KNOWN)]
        tensors["input_ids"] = [rng.randrange(_KNOWN) for _ in range(tokens)]
        tensors["tid2eid"] = [expert for row in rows for expert in row]
    return Structure(axes, tensors, spec.scalars)


def a_chunk(spec: Spec) -> Iterator[Step]:
    """Yield a chunk of prefill."""
    yield from batches("M", CHUNK)


def table_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the tokens and their table fit a blob."""
    table = 4 * _KNOWN * spec.const("topk")
    return "tid2eid" not in spec.inputs or fits_a_blob(8 * captured.axes["M"] + table)
