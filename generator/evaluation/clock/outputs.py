"""Outputs of timed calls: where they lie, numbers as tensors, how far two are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from generator.evaluation.arena import Layout, Place
from generator.evaluation.clock.shared_memory import SharedMemory
from generator.evaluation.verdict import INCORRECT_DTYPE, Refused


def in_arena(
    reply: Any, layout: Layout, arena: SharedMemory | None
) -> list[tuple[Place, int]]:
    """Return the outputs that lie in an arena, and where; nothing that is said counts
    that is out of its bounds."""
    described = reply.get("outputs") if isinstance(reply, dict) else None
    if arena is None or not isinstance(described, list):
        return []
    values = []
    for place, one in zip(layout.outputs, described, strict=False):
        at = one.get("arena") if isinstance(one, dict) else None
        if "at" not in place or not isinstance(at, int) or isinstance(at, bool):
            continue
        if 0 <= at <= arena.size - place["bytes"]:
            values.append((place, at))
    return values


def number_at(value: Any, place: Mapping[str, Any]) -> Any:
    """Return a number that was returned as its output's place has it. Raises Refused."""
    if "at" not in place:
        return value
    try:
        return torch.tensor(value, dtype=getattr(torch, place["dtype"]))
    except (RuntimeError, OverflowError, TypeError) as error:
        why = f"it returned {value}, which no {place['dtype']} holds"
        raise Refused(INCORRECT_DTYPE, why) from error


def distance(one: Any, other: Any) -> float:
    """Return how far two outputs are apart, as a share of the second one's size."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return 0.0
    if not one.is_floating_point() or one.dtype.itemsize == 1 or one.numel() == 0:
        return float((one.view(torch.uint8) != other.view(torch.uint8)).float().mean())
    # two norms and one wait for the device; of what is not finite below
    wide = torch.promote_types(one.dtype, torch.float32)
    norms = [torch.linalg.vector_norm(v, dtype=wide) for v in (one - other, other)]
    off, size = torch.stack(norms).tolist()
    if math.isfinite(off) and math.isfinite(size):
        share = off / max(size, 1e-15)
        return float(share * share)
    a, b = one.float(), other.float()
    finite = torch.isfinite(a) & torch.isfinite(b)
    among = torch.where(finite, a - b, 0.0).square().sum()
    of = torch.where(finite, b, 0.0).square().sum() + 1e-30
    differ = (torch.isfinite(a) != torch.isfinite(b)).float().mean()
    return float(among / of + differ)
