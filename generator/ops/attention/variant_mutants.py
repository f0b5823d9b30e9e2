"""Domain mutants of windows, soft caps, sinks and attention without a mask.

Each is the float64 oracle of another variant, rounded as the outputs are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.oracle import oracle_paged, oracle_ragged
from generator.ops.attention.sequences import is_paged
from generator.ops.attention.variant import Variant, has_sinks, variant_of
from generator.ops.mutants import DomainMutant, Inputs, Outputs, Run, calling
from generator.testing.definition import Definition

# inputs → what the wrong reference reads instead, and the variant that it computes
Wrong = Callable[[Inputs], tuple[dict[str, Any], Variant]]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what a definition's variant adds; none of plain attention."""
    variant = variant_of(definition)
    found = []
    if variant.window_left >= 0:
        found += _of_window(definition, variant)
    if variant.soft_cap:
        found += _of_cap(definition, variant)
    if has_sinks(definition):
        found += _of_sinks(definition, variant)
    if not variant.causal:
        causal = replace(variant, causal=True)
        found.append(_as(definition, "causal mask left on", lambda i: ({}, causal)))
    return tuple(found)


def _of_window(definition: Definition, variant: Variant) -> list[DomainMutant]:
    left = variant.window_left

    def of(window_left: int) -> Wrong:
        return lambda inputs: ({}, replace(variant, window_left=window_left))

    return [
        _as(definition, "window one key too narrow", of(left - 1)),
        # the convention of a model's sliding_window, which counts the query's own key
        _as(definition, "window one key too wide", of(left + 1)),
        _as(definition, "window missing", of(-1)),
        _as(definition, "window missing in the LSE", of(-1), outputs="lse"),
        _as(definition, "window missing in the output", of(-1), outputs="output"),
    ]


def _of_cap(definition: Definition, variant: Variant) -> list[DomainMutant]:
    cap = variant.soft_cap

    def of(soft_cap: float) -> Wrong:
        return lambda inputs: ({}, replace(variant, soft_cap=soft_cap))

    def before_scale(inputs: Inputs) -> tuple[dict[str, Any], Variant]:
        # scale · cap · tanh(qk / cap)
        return {}, replace(variant, soft_cap=cap * float(inputs["sm_scale"]))

    return [
        _as(definition, "soft cap missing", of(0.0)),
        _as(definition, "soft cap before the scale", before_scale),
        _as(definition, "soft cap missing in the LSE", of(0.0), outputs="lse"),
        _as(definition, "soft cap missing in the output", of(0.0), outputs="output"),
        _as(definition, "soft cap of another model", of(30.0 if cap == 50 else 50.0)),
    ]


def _of_sinks(definition: Definition, variant: Variant) -> list[DomainMutant]:
    heads, kv_heads = definition.axes["num_qo_heads"], definition.axes["num_kv_heads"]

    def of(change: Callable[[torch.Tensor, Inputs], torch.Tensor]) -> Wrong:
        return lambda inputs: ({"sinks": change(inputs["sinks"], inputs)}, variant)

    missing = of(lambda sinks, inputs: sinks - math.inf)
    found = [
        _as(definition, "sinks missing", missing),
        _as(definition, "sinks missing in the LSE", missing, outputs="lse"),
        _as(definition, "sinks missing in the output", missing, outputs="output"),
        _as(definition, "sinks scaled", of(lambda s, i: s * i["sm_scale"])),
        _as(definition, "sinks in base 2", of(lambda s, i: s * math.log(2.0))),
        _as(definition, "sinks of the next head", of(lambda s, i: s.roll(1))),
    ]
    if kv_heads < heads:
        ratio = heads // kv_heads
        found.append(
            _as(
                definition,
                "sinks of the KV head",
                of(lambda s, i: s[:kv_heads].repeat_interleave(ratio)),
            )
        )
    return found


def _as(
    definition: Definition, name: str, wrong: Wrong, outputs: str = "output lse"
) -> DomainMutant:
    """Return the mutant that replaces `outputs` by those of another variant."""

    def call(run: Run, inputs: dict[str, Any]) -> Outputs:
        right = dict(zip(("output", "lse"), run(*inputs.values()), strict=True))
        changed, variant = wrong(inputs)
        given = {**inputs, **changed}
        if is_paged(definition):
            caches = given["k_cache"], given["v_cache"]
            found = oracle_paged(given["q"], *caches, given, variant)
        else:
            found = oracle_ragged(given, variant)
        replaced = dict(zip(("output", "lse"), found, strict=True))
        return tuple(
            replaced[part].to(value.dtype) if part in outputs.split() else value
            for part, value in right.items()
        )

    return calling(definition, name, call)
