"""Collectives over ranks: all-reduce, all-gather of columns, reduce-scatter."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "collectives",
    name_tokens={"tp": "world_size", "h": "hidden_size"},
    # what is gathered are logits
    figures={"hidden_size": Figure(("hidden_size", "vocab_size"), takes="any")},
    kernels={"allreduce": "flashinfer.comm.allreduce_fusion"},
    absent={"sglang": "SGLang's collectives are in its kernel wheel"},
)
