"""The case of logits beneath the numbers that stand for masked keys.

Some kernels give masked keys a logit of -10,000 in place of minus infinity, or begin their
largest one there. It is then larger than all that a query sees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from generator.ops.attention.variant import has_sinks, variant_of
from generator.ops.own_inputs import OwnInputs
from generator.ops.registry import optional_op_module
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# FlashInfer's kernels take less than -5e4 for masked: some before sm_scale and stored scales,
# others in base 2, where this is -49,000
_LEAST = 3.4e4
# of latent attention the rest of a key is a value as well, and has to vary
_QUERIES = ("q_pe", "q", "q_p", "q_d")
_KEYS = ("kpe_cache", "k_cache", "k", "k_p")


def low_logits(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the case whose keys are all alike, with a logit of -13,000 to -34,000 each.

    So each key that a query sees has the same share, whatever a logit is rounded to; being
    sums of one power of two they are exact. None where a cap or a sink leaves nothing to
    masked keys at -10,000, or where by slopes rounding such logits decides.
    """
    variant = variant_of(definition)
    if variant.soft_cap > 0 or variant.slopes or has_sinks(definition):
        return []
    usual = [case for case in declared if case.name == "other-scale"]
    return [
        OwnInputs(
            "low-logits",
            LIMITS,
            case.axes,
            case.params,
            make_inputs=_alike,
        )
        for case in usual
    ]


def _alike(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the op's inputs with all keys along one line, and queries against it."""
    op = optional_op_module(definition.op_type, "op")
    assert op is not None
    inputs: dict[str, Any] = op.OP.make_inputs(definition, case, stream)
    inputs["sm_scale"] = 1.0
    if "q_nope" in inputs:
        inputs["q_nope"] = torch.zeros_like(inputs["q_nope"])
    for names, sign in ((_QUERIES, 1.0), (_KEYS, -1.0)):
        for name in [n for n in names if n in inputs]:
            length = inputs[name].shape[-1]
            power = math.floor(math.log2(_LEAST / length))
            half = (power + (sign > 0)) // 2
            row = sign * 2.0**half * (1.0 - 2.0 * (torch.arange(length) % 3 % 2))
            rows = row.expand_as(inputs[name])
            if sign > 0:
                rows = rows * _sizes(inputs[name].shape[:-1])[..., None]
            inputs[name] = rows.to(inputs[name].dtype).clone()
    return inputs


def _sizes(shape: torch.Size) -> torch.Tensor:
    """Return a size for each query, from 0.73 to 1.

    Of one logit alone, what a kernel rounds before it exponentiates has one sign: FlashInfer's
    fa3 made outputs larger by 0.05 %. Larger sizes reach what FlashInfer takes for minus
    infinity: of a logit of -44,900, in base 2 -64,800, its fa2 returned 0.
    """
    places = torch.arange(shape.numel()) * 11 % 35
    return (1.0 - places / 128.0).view(shape)
