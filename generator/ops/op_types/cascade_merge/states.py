"""The parts of a merge, however its interface lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def states_of(inputs: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return v [seq_len, parts, heads, d] and s [seq_len, parts, heads] of a call."""
    if "v" in inputs:
        return inputs["v"], inputs["s"]
    return (
        torch.stack([inputs["v_a"], inputs["v_b"]], dim=1),
        torch.stack([inputs["s_a"], inputs["s_b"]], dim=1),
    )
