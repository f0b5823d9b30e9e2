"""Mamba 1: a decode step and a scan, with a step and a state for each channel."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "mamba1",
    name_tokens={"d": "dim", "s": "dstate"},
    absent={
        "flashinfer": "FlashInfer's state update has one step for a head of channels"
    },
    domains={"A": "negative"},
)
