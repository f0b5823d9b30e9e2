"""Workloads of embeddings: the tokens of a batch, and the shard that is asked."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, fits_a_blob


def tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured gemm had rows, of a vocabulary's shards.

    A definition of a whole vocabulary has one shard, with all tokens.
    """
    rows = captured.axes["M"]
    size = spec.const("vocab_size")
    shared = [tag for tag in spec.tags if tag.startswith("tp:")]
    shards = int(shared[0].removeprefix("tp:")) if shared else 1
    ids = [rng.randrange(shards * size) for _ in range(rows)]
    start = rng.randrange(shards) * size
    return Structure({"num_tokens": rows}, {"input_ids": ids}, {"vocab_start": start})


def tokens_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 tokens fit in a blob."""
    return fits_a_blob(8 * captured.axes["M"])
