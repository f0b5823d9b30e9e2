"""Cases that only solutions are asked: many adapters, and scalings of many bits."""

from __future__ import annotations

import math
from dataclasses import replace

from generator.ops.far_factors import with_factors
from generator.ops.op_types.lora.op import cases as declared
from kernel_judge.definition import Case, Definition

# halfway between two numbers of float16, nearly so between two of bfloat16, and so far from 1
# that products of bfloat16 with it are rounded up as often as down
_HALFWAY = math.log2(1.0 + 2.0**-4 + 2.0**-8 + 2.0**-11)
# of the base, so that what an adapter adds is nearly all there is
_SMALL = -24.0
# a kernel may number adapters by 8 bits, and a wide one's matrices take much memory
_MOST_ADAPTERS, _MOST_BYTES = 300, 16 << 20


def cases(definition: Definition) -> list[Case]:
    """Return more adapters than a table may hold, and what scalings multiply."""
    named = {case.name: case for case in declared(definition)}
    lengths = [n for name, n in definition.axes.items() if name != "num_adapters"]
    adapters = min(_MOST_ADAPTERS, _MOST_BYTES // (2 * math.prod(lengths)))
    axes = {"num_tokens": 2 * adapters, "num_adapters": adapters}
    asked = [replace(named["mixed-adapters"], name="many-adapters", axes=axes)]
    if "scalings" in definition.interface.inputs:
        moved = {"scalings": _HALFWAY, "base": _SMALL}
        asked.append(with_factors(named["batch"], "scalings-of-many-bits", **moved))
    return asked
