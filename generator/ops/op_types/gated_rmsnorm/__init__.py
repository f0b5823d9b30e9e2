"""Gated RMS norms of delta nets and of Mamba."""

from __future__ import annotations

from generator.ops.spec import EPS_WORDS, OpSpec

SPEC = OpSpec(
    "gated_rmsnorm",
    name_tokens={"h": "hidden_size", "ng": "num_groups"},
    name_words={**EPS_WORDS, "group": ("gate_first", True)},
    constants={"eps": None},
    variant_constants=("gate_first",),
    absent={"flashinfer": "FlashInfer has no gated norm"},
)
