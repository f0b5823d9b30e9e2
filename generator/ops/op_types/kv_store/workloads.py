"""Workloads of stores: tokens of captured gemms, in slots of a cache twice as large."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, distinct, fits_a_blob

MOST_COPIES = 128
_FEW_TOKENS = 64


def slots(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return a slot for each token, none twice, and scales of a calibrated cache."""
    tokens = captured.axes["M"]
    axes = {"num_tokens": tokens, "num_slots": 2 * tokens}
    if "num_pages" in spec.axes:
        axes["num_pages"] = -(-2 * tokens // spec.const("page_size"))
    chosen = distinct(tokens, 2 * tokens, rng)
    scales = {name: rng.randint(1, 64) / 1024 for name in ("k_scale", "v_scale")}
    return Structure(axes, {"slot_mapping": chosen}, scales)


def slots_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int64 slots fit in a blob."""
    return fits_a_blob(8 * captured.axes["M"])


def few_slots_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a batch is of a decode's size."""
    return captured.axes["M"] <= _FEW_TOKENS


def blocks(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return blocks to copy and free ones to copy them to, of four times as many."""
    copies = min(captured.axes["M"], MOST_COPIES)
    chosen = distinct(2 * copies, 4 * copies, rng)
    axes = {"num_copies": copies, "num_pages": 4 * copies}
    return Structure(axes, {"sources": chosen[:copies], "targets": chosen[copies:]})
