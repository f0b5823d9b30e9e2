"""Structural tensors of gated delta nets: slots of a pool, and where sequences end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import accumulate

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure, distinct, split

# Tokens that a sequence has to verify: the last one accepted, and one to four drafts.
DRAFTS = (2, 3, 4, 5)
# Slots of the pool beside those of the batch: few, for each has a buffer of drafts.
SPARE_SLOTS = 8


# Captured axes that don't count keys: a state has the same size whatever it has read.
DECODE_AXES = ("batch_size",)
PREFILL_AXES = ("len_indptr", "total_q")


def states(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the structure of any definition of the family."""
    return delta_structure(captured.axes, rng)


def states_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the updated states, held all at once in float32, fit in memory."""
    one = 4 * spec.const("num_v_heads") * spec.const("head_size") ** 2
    drafts = "intermediate_states_buffer" in spec.inputs
    return state_bytes(captured.axes, one, drafts) <= MEMORY_LIMIT


def delta_structure(axes: Mapping[str, int], rng: random.Random) -> Structure:
    """Return the structure of a prefill, or of the decode of a batch."""
    if "total_q" in axes:
        return _prefill(axes["len_indptr"] - 1, axes["total_q"], rng)
    batch_size = axes["batch_size"]
    pool = batch_size + rng.randint(1, SPARE_SLOTS)
    made = {"batch_size": batch_size, "seq_len": rng.choice(DRAFTS), "pool_size": pool}
    slots = distinct(batch_size, pool, rng)
    return Structure(made, {"initial_state_indices": slots})


def _prefill(num_seqs: int, tokens: int, rng: random.Random) -> Structure:
    lengths = split(tokens, num_seqs, 1, rng)
    axes = {
        "total_seq_len": tokens,
        "num_seqs": num_seqs,
        "len_cu_seqlens": num_seqs + 1,
    }
    return Structure(axes, {"cu_seqlens": [0, *accumulate(lengths)]})


def state_bytes(axes: Mapping[str, int], one: int, drafts: bool) -> int:
    """Return the bytes of all states that a workload may have, of `one` byte each.

    With drafts a buffer holds a state for each token of each slot.
    """
    if "total_q" in axes:
        return (axes["len_indptr"] - 1) * one
    if not drafts:
        return axes["batch_size"] * one
    return (axes["batch_size"] + SPARE_SLOTS) * max(DRAFTS) * one
