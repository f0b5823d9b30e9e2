"""Workloads of rotary embeddings in 8 bits: positions, and slots of a paged cache."""

from __future__ import annotations

import random
from dataclasses import replace

from generator.ops.family import Spec
from generator.ops.op_types.page_append.workloads import appended
from generator.ops.op_types.rope.workloads import rope_structure
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.choose import keys
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure, fits_a_blob

# The longest context of the models here.
POSITIONS = 163_840
# as a calibration to an amax of some ten to hundred gives them
SCALES = {"quant_scale_q": 12.5, "quant_scale_kv": 20.0}


def rows(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return the positions of a batch of tokens; the captured axis is a gemm's M."""
    structure = rope_structure(captured.axes["M"], rng, ((1, 1),), POSITIONS)
    tensors = {"pos_ids": structure.tensors["positions"]}
    return replace(structure, tensors=tensors, scalars=SCALES)


def rows_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the int32 positions fit in a blob."""
    return fits_a_blob(4 * captured.axes["M"])


def appended_rows(
    spec: Spec, captured: CapturedWorkload, rng: random.Random
) -> Structure:
    """Return the last tokens of sequences, each at the position that it turns by."""
    structure = appended(spec, captured, rng)
    tensors = {**structure.tensors, "pos_ids": structure.tensors["positions"]}
    axes = {
        **structure.axes,
        "num_tokens": structure.axes["nnz_kv"],
        "max_seq_len": max(POSITIONS, max(structure.tensors["positions"]) + 1),
    }
    return Structure({name: int(size) for name, size in axes.items()}, tensors, SCALES)


def appended_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the numbers fit a blob, and a cache in memory."""
    axes = captured.axes
    tokens = keys(axes) + axes["total_q"]
    batch = axes["len_indptr"] - 1
    numbers = 3 * axes["total_q"] + tokens // spec.const("page_size") + 3 * batch
    row = spec.const("rope_dim") + spec.const("nope_dim")
    heads = spec.const("num_kv_heads") if "num_kv_heads" in spec.axes else 1
    return fits_a_blob(4 * numbers) and 4 * tokens * heads * row <= MEMORY_LIMIT
