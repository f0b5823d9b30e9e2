"""Audit sizes of products of fp4, and the ranges of their random cases."""

from __future__ import annotations

from generator.ops.axes import Axes
from generator.ops.op_types.gemm_fp4.op import is_swizzled, tiled
from generator.ops.variation import Variation
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream


def reduced(axes: Axes) -> Axes:
    """Return more columns than the reference takes at a time, and few terms."""
    return _small(axes, 1152)


def tiny(axes: Axes) -> Axes:
    """Return fewer columns."""
    return _small(axes, 256)


def _small(axes: Axes, columns: int) -> dict[str, int]:
    width = 2 * axes["bytes_k"] // axes["num_k_blocks"]
    return {"N": columns, "bytes_k": 128, "num_k_blocks": 256 // width}


def varied(definition: Definition, case: Case, draw: Stream, other: bool) -> Variation:
    """Return one to eight rows."""
    rows = draw.integers(1, 9, 1)[0]
    axes = tiled(rows) if is_swizzled(definition) else {"M": rows}
    return axes, dict(case.params)
