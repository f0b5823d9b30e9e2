"""The op that an op_type declares, as a value; imports its module, and so torch."""

from __future__ import annotations

from functools import cache

from generator.ops.registry import op_module, op_specs
from kernel_judge.subject import Op


@cache
def op_of(op_type: str) -> Op:
    """Return what an op_type declares; of one without a module, guessed inputs alone."""
    if op_type not in op_specs():
        return Op(guesses_inputs=True)
    return Op.from_names(vars(op_module(op_type)))
