"""Audit sizes of caches."""

from __future__ import annotations

from generator.ops.axes import Axes


def reduced(axes: Axes) -> Axes:
    """Return few short heads, or short latents."""
    if "latent_dim" in axes:
        return {"latent_dim": 40, "rope_dim": 12, "row_dim": 52}
    if "num_blocks" in axes:
        return {"num_kv_heads": 3, "head_dim": 48, "head_bytes": 24, "num_blocks": 3}
    return {"num_kv_heads": 3, "head_dim": 20}
