"""Structural tensors of gated delta nets: slots of a pool, and where sequences end."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import accumulate

from tools.workloads.structure import Structure, distinct, split

# Tokens that a sequence has to verify: the last one accepted, and one to four drafts.
DRAFTS = (2, 3, 4, 5)
# Slots of the pool beside those of the batch: few, for each has a buffer of drafts.
SPARE_SLOTS = 8


def kept_axes(axes: Mapping[str, int]) -> dict[str, int]:
    """Return of attention's captured axes those that don't count keys.

    What a state has to remember is no matter of its size.
    """
    names = ("len_indptr", "total_q") if "total_q" in axes else ("batch_size",)
    return {name: axes[name] for name in names}


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
