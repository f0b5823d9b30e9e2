"""Hyper-connections, before and behind a layer."""

from __future__ import annotations

from generator.ops.spec import Figure, OpSpec

SPEC = OpSpec(
    "mhc",
    name_tokens={"hc": "hc", "h": "hidden_size", "mix": "mhc_mix"},
    figures={"hidden_size": Figure(("hidden_size",)), "hc": Figure(("hc_mult",))},
    constants={"eps": 1e-06, "post_factor": 2.0, "rounds": 20},
    domains={"sqrsum": "non-negative"},
)
