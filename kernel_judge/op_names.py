"""The names of what an op declares; imports no torch."""

from __future__ import annotations

PROVIDERS = ("flashinfer", "sglang", "pytorch")
"""Who makes production kernels, in the order in which they are asked."""

OP_FIELDS = (
    "cases",
    "make_inputs",
    "oracle",
    "defined_rows",
    "filled_inputs",
    "peak_bytes",
    "relations",
    "tolerances",
    "policies",
    "kernels",
)
"""The fields that an op_type may declare in `OP = Op(…)`; the first three are required."""
