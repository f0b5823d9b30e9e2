"""The names by which a module of an op declares its functions; imports no torch."""

from __future__ import annotations

PROVIDERS = ("flashinfer", "sglang", "pytorch")
"""Who makes production kernels, in the order in which they are asked."""

OWN = (
    "cases",
    "make_inputs",
    "oracle",
    "defined_rows",
    "filled_inputs",
    "peak_bytes",
    "relations",
)
"""Functions of the op itself; the first three are required."""

OP_FUNCTIONS = (
    *OWN,
    *(f"{p}_{part}" for p in PROVIDERS for part in ("backends", "ground_truth")),
)
"""All functions: those of the op, and of each provider that has a kernel for it."""
