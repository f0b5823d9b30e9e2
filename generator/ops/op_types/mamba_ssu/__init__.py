"""Mamba2: the state update of a decode step."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "mamba_ssu",
    name_tokens={"h": "nheads", "d": "head_dim", "s": "dstate", "ng": "ngroups"},
    figures={
        "nheads": Figure(("mamba_num_heads",), "tp"),
        "ngroups": Figure(("n_groups",), "tp"),
        "dstate": Figure(("ssm_state_size",)),
        "head_dim": Figure(("mamba_head_dim",)),
    },
    domains={"A": "negative"},
)
