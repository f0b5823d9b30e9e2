"""Gated RMS norms: of the heads of a delta net, and of groups behind Mamba's gate."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gated_rmsnorm",
    name_tokens={"h": "hidden_size", "ng": "num_groups"},
    name_words={"group": ("gate_first", True)},
    constants={"eps": None},
    variant_constants=("gate_first",),
    absent={"flashinfer": "FlashInfer has no gated norm"},
)
