"""Cases that only solutions are asked: laws of thousands of tokens, in many draws.

They take longer than a reference's tests may. `deep` has one token of 1/2 beside 8,192 of
2^-14: weights to the power 1.05 leave the tail 0.389 of all, 9.7 deviations of 1,920 draws
below 1/2, where 5.8 are refused; random numbers of 13 bits reach every second token
of the tail, so that twice as many of its 960 draws coincide, 112 pairs where 56 do by
chance; seven eighths of it are beyond rank 1,024. `flat` has 8,192 tokens of 2^-13.
"""

from __future__ import annotations

from generator.ops.op_types.sampling.cases import kind_of
from kernel_judge.definition import Case, Definition

# kind → k and p of both laws, which keep all of their tokens
_KEEPING = {
    "top_k": ((8193, 1.0), (8192, 1.0)),
    "top_p": ((0, 1.0), (0, 1.0)),
    "top_k_top_p": ((8193, 1.0), (8192, 1.0)),
    "min_p": ((0, 0.0), (0, 0.0)),
    "": ((0, 1.0), (0, 1.0)),
}
# tokens of the larger law
_MOST = 8193
_DEEP_ROWS, _FLAT_ROWS, _CALLS = 48, 12, 40


def cases(definition: Definition) -> list[Case]:
    """Return the case of deep laws; none where the vocabulary is smaller than these."""
    if definition.axes["vocab_size"] < _MOST:
        return []
    deep, flat = _KEEPING[kind_of(definition)]
    rows = (("deep", *deep, _DEEP_ROWS), ("flat", *flat, _FLAT_ROWS))
    axes = {"batch_size": _DEEP_ROWS + _FLAT_ROWS}
    return [Case("deep-laws", "medium", axes, {"calls": _CALLS, "rows": rows})]
