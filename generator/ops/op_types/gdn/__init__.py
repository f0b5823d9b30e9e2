"""Gated delta net: decode, multi-token prediction, prefill."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gdn",
    name_tokens={"qk": "num_q_heads", "v": "num_v_heads", "d": "head_size"},
    kernels={"gdn_mtp_": "flashinfer.gdn_decode.gated_delta_rule_mtp"},
    name_words={"l2norm": ("l2norm", True)},
    variant_constants=("l2norm",),
    filled_inputs=("intermediate_states_buffer",),
    domains={"k": "unit"},
    without_domains=("l2norm",),
)
