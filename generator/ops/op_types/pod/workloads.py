"""Workloads of prefill on decode: captured decodes, and a chunk of a longer prompt."""

from __future__ import annotations

import random

from generator.ops.attention import workloads
from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure

# queries of a chunk, and the chunks of the prompt that are in the cache already
CHUNKS = (128, 256, 512)
BEFORE = 3


def prefill_and_decodes(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return the captured decodes beside one chunk of a prompt."""
    structure = workloads.paged(spec, captured, rng)
    q_len = rng.choice(CHUNKS)
    axes = {
        **structure.axes,
        "q_len": q_len,
        "kv_len": q_len * rng.randint(1, 1 + BEFORE),
    }
    return Structure(axes, structure.tensors)


def both_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the page table fits in a blob and a decode's logits in memory.

    The prefill's are 32 heads of 512 by 2,048 float32 numbers at most, 134 MB.
    """
    return workloads.paged_fits(spec, captured)
