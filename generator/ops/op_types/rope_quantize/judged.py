"""The case that only solutions are asked: scales of many bits."""

from __future__ import annotations

import math

from generator.ops.far_factors import with_factors
from generator.ops.op_types.rope_quantize.op import cases as declared
from kernel_judge.definition import Case, Definition

# halfway between two numbers of float16, and nearly so between two of bfloat16
_HALFWAY = math.log2(1.0 + 2.0**-8 + 2.0**-11)


def cases(definition: Definition) -> list[Case]:
    """Return rows to quantise by such scales."""
    (chunks,) = (case for case in declared(definition) if case.name == "later-chunks")
    moved = dict.fromkeys(("quant_scale_q", "quant_scale_kv"), _HALFWAY)
    return [with_factors(chunks, "scales-of-many-bits", **moved)]
