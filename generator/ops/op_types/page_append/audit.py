"""Audit sizes of appending, and the ranges of its random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.page_append.inputs import append_axes
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# a little more than one page of 64
LONGEST = 70


def tiny(axes: Axes) -> Axes:
    """Return few, short heads, or short latents; every number is copied alike."""
    if "head_dim_ckv" in axes:
        return {"head_dim_ckv": 16, "head_dim_kpe": 8}
    return {"num_kv_heads": 3, "head_dim": 8}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to four sequences of other lengths, of which some part is new."""
    kv_lens = draw.child("kv").integers(0, 2 * LONGEST, draw.integers(1, 5, 1)[0])
    # one row at least is appended
    kv_lens[0] = max(kv_lens[0], 1)
    draws = draw.child("new").integers(0, LONGEST, len(kv_lens))
    new = [min(count, kv) for count, kv in zip(draws, kv_lens, strict=True)]
    new[0] = max(new[0], 1)
    page_size = case.axes.get("page_size", definition.axes.get("page_size", 1))
    params = {**case.params, "kv_lens": tuple(kv_lens), "new": tuple(new)}
    axes = append_axes(kv_lens, new, page_size)
    return {name: axes[name] for name in case.axes}, params
