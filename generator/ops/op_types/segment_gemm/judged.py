"""The case that only solutions are asked: more weights than a table may hold."""

from __future__ import annotations

import math

from generator.ops.op_types.segment_gemm.segments import axes_of
from kernel_judge.definition import Case, Definition

_MOST_WEIGHTS, _MOST_BYTES = 300, 16 << 20


def cases(definition: Definition) -> list[Case]:
    """Return segments of one to three rows of as many weights as fit in 16 MiB."""
    size = 2 * math.prod(definition.axes[axis] for axis in ("N", "K"))
    weights = min(_MOST_WEIGHTS, _MOST_BYTES // size)
    lengths = tuple(1 + place % 3 for place in range(weights))
    return [
        Case("many-weights", "small", axes_of(lengths, weights), {"lengths": lengths})
    ]
