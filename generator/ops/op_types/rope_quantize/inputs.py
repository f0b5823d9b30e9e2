"""The inputs of rotary embeddings in 8 bits: rows, and slots where they are appended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.op_types.rope_quantize.names import CACHES, ROWS
from generator.ops.paging import SPARE_PAGES, page_counts, page_table
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# (length after the append, of it new) of each sequence
Lengths = Sequence[tuple[int, int]]


def axes_of(definition: Definition, lengths: Lengths, rows: int) -> dict[str, int]:
    """Return the variable axes for sequences, and positions of cos_sin_cache."""
    axes = {"num_tokens": sum(new for _, new in lengths), "max_seq_len": rows}
    if "page_size" in definition.axes:
        kv_lens = [length for length, _ in lengths]
        pages = sum(page_counts(kv_lens, definition.axes["page_size"]))
        axes |= {"num_pages": pages + SPARE_PAGES, "num_kv_indices": pages}
        axes["len_indptr"] = len(lengths) + 1
    return axes


def made_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return rows, positions and scales; and full caches with a table of pages.

    Rows bfloat16 as the definition declares them, cos_sin_cache float32 [max_seq_len,
    rope_dim] of unit vectors, caches float8_e4m3fn, the rest int32, scales Python floats.
    The position by which a row turns is not the one where it is written.
    """
    axes, params = {**definition.axes, **case.axes}, case.params
    specs, tokens = definition.interface.input_specs, axes["num_tokens"]
    rows = axes["max_seq_len"]
    # rational points of the circle: cosines would differ between libraries
    slope = stream.child("slope").values((rows, axes["rope_dim"] // 2))
    square = slope * slope
    circle = torch.cat([1.0 - square, 2.0 * slope], 1)
    inputs: dict[str, Any] = {
        "cos_sin_cache": circle / (1.0 + square).repeat(1, 2),
        "pos_ids": _int32(stream.child("pos_ids").integers(0, rows, tokens)),
        "quant_scale_q": params["scale_q"],
        "quant_scale_kv": params["scale_kv"],
    }
    for name in (*ROWS, *CACHES):
        if name in specs:
            shape = [axes[axis] for axis in specs[name].shape or ()]
            values = stream.child(name).values(shape, 1.0, torch.bfloat16)
            is_cache = name in CACHES
            inputs[name] = values.to(torch.float8_e4m3fn) if is_cache else values
    if "page_size" in definition.axes:
        lengths = params["lengths"]
        kv_lens = [length for length, _ in lengths]
        table = page_table(kv_lens, axes["page_size"], axes["num_pages"], stream)
        pairs = [
            (b, length - new + i)
            for b, (length, new) in enumerate(lengths)
            for i in range(new)
        ]
        inputs |= {"kv_indices": table.indices, "kv_indptr": table.indptr}
        inputs["batch_indices"], inputs["positions"] = (
            _int32(part) for part in zip(*pairs, strict=True)
        )
    return {name: inputs[name] for name in specs}


def _int32(numbers: Sequence[int]) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)
