"""Structured tensors in the workloads of mixtures of experts."""

from __future__ import annotations

import random
import struct

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import Structure, distinct, fits_a_blob


def moe_structure(
    spec: Spec, captured: CapturedWorkload, rng: random.Random, experts: int
) -> Structure:
    """Return the experts of `experts` that tokens were routed to, and which are here.

    A captured workload keeps its own first local expert and scaling factor; for other
    definitions the model's factor is in `spec.scalars` and the device is drawn.
    """
    if spec.captured_from == spec.name:
        return Structure(captured.axes, scalars=captured.scalars)
    scalars = dict(spec.scalars)
    if "local_expert_offset" in spec.inputs:
        local = spec.const("num_local_experts")
        device = rng.randrange(experts // local)
        scalars = {"local_expert_offset": device * local, **scalars}
    if "topk_ids" not in spec.inputs:
        return Structure(captured.axes, scalars=scalars)
    top_k, tokens = spec.const("top_k"), range(captured.axes["seq_len"])
    ids = [packed for _ in tokens for packed in _packed_row(top_k, experts, rng)]
    return Structure(captured.axes, {"topk_ids": ids}, scalars)


def moe_fits(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether the experts that tokens were routed to fit in a blob."""
    if "topk_ids" not in spec.inputs:
        return True
    return fits_a_blob(4 * captured.axes["seq_len"] * spec.const("top_k"))


def _packed_row(top_k: int, experts: int, rng: random.Random) -> list[int]:
    """Return (expert << 16) | bits of a bfloat16 for the experts of one token.

    The weights add up to about 1; a single one is a sigmoid's value.
    """
    shares = [rng.uniform(1.0, 3.0) for _ in range(top_k)]
    total = sum(shares) if top_k > 1 else 4.0
    chosen = distinct(top_k, experts, rng)
    return [
        expert << 16 | _bfloat16_bits(share / total)
        for expert, share in zip(chosen, shares, strict=True)
    ]


def _bfloat16_bits(value: float) -> int:
    """Return the upper half of a float32's bits: a value just below is near enough."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    return bits >> 16
