"""The op that an op_type declares, as a value; imports its module, and so torch."""

from __future__ import annotations

from functools import cache

from generator.ops.op_source import op_source
from generator.ops.registry import op_module, op_specs
from kernel_judge.subject import Op


@cache
def op_of(op_type: str) -> Op:
    """Return what an op_type declares; of one without a module, guessed inputs alone."""
    if op_type not in op_specs():
        return Op(guesses_inputs=True)
    op_source(op_type)  # what is wrong with the module in a line, before its import
    op: Op = op_module(op_type).OP
    return op
