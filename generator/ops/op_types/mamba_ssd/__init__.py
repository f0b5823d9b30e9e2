"""Mamba2: the state space of a prefill."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "mamba_ssd",
    name_tokens={"h": "nheads", "d": "head_dim", "s": "dstate", "ng": "ngroups"},
    figures={
        "nheads": Figure(("mamba_num_heads",), "tp"),
        "ngroups": Figure(("n_groups",), "tp"),
        "dstate": Figure(("ssm_state_size",)),
        "head_dim": Figure(("mamba_head_dim",)),
    },
    absent={"flashinfer": "FlashInfer's SSDCombined needs SM100"},
    domains={"A": "negative"},
)
