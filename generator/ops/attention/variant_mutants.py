"""Domain mutants of windows, soft caps, sinks and attention without a mask.

Each is the float64 oracle of another variant, rounded as the outputs are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.caches import is_head_major, over_heads, switched
from generator.ops.attention.masks import mask_rows
from generator.ops.attention.oracle import oracle_paged, oracle_ragged
from generator.ops.attention.scale_mutants import scale_mutants, scale_mutants_of_heads
from generator.ops.attention.sequences import is_paged
from generator.ops.attention.variant import Variant, has_mask, has_sinks, variant_of
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    Outputs,
    Run,
    calling,
    on_inputs,
    on_outputs,
)
from generator.ops.paging import key_lengths, query_starts
from kernel_judge.definition import Definition

# inputs → what the wrong reference reads instead, and the variant that it computes
Wrong = Callable[[Inputs], tuple[dict[str, Any], Variant]]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what a definition's variant adds; none of plain attention."""
    variant = variant_of(definition)
    defects = []
    if variant.window_left >= 0:
        defects += _of_window(definition, variant)
    if variant.soft_cap:
        defects += _of_cap(definition, variant)
    if has_sinks(definition):
        defects += _of_sinks(definition, variant)
    if variant.slopes:
        defects += _of_slopes(definition, variant)
    if has_mask(definition):
        defects += _of_mask(definition, variant)
    if "k_scale" in definition.interface.inputs:
        defects += _of_scales(definition, variant)
    if is_head_major(definition):
        defects.append(on_inputs(definition, "pages read in layout NHD", _as_if_nhd))
    if definition.constants.get("fp16", False):
        defects += _of_float16(definition)
    if not variant.causal:
        causal = replace(variant, causal=True)
        defects.append(_as(definition, "causal mask left on", lambda i: ({}, causal)))
    return tuple(defects)


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
    defects = [
        _as(definition, "sinks missing", missing),
        _as(definition, "sinks missing in the LSE", missing, outputs="lse"),
        _as(definition, "sinks missing in the output", missing, outputs="output"),
        _as(definition, "sinks scaled", of(lambda s, i: s * i["sm_scale"])),
        _as(definition, "sinks in base 2", of(lambda s, i: s * math.log(2.0))),
        _as(definition, "sinks of the next head", of(lambda s, i: s.roll(1))),
    ]
    if kv_heads < heads:
        ratio = heads // kv_heads
        defects.append(
            _as(
                definition,
                "sinks of the KV head",
                of(lambda s, i: s[:kv_heads].repeat_interleave(ratio)),
            )
        )
    return defects


def _of_slopes(definition: Definition, variant: Variant) -> list[DomainMutant]:
    heads, slopes = len(variant.slopes), variant.slopes

    def of(*changed: float) -> Wrong:
        return lambda inputs: ({}, replace(variant, slopes=changed))

    def from_first_key(outputs: Outputs, inputs: Inputs) -> Outputs:
        q_lens = query_starts(inputs).diff()
        lengths = key_lengths(inputs, definition.axes.get("page_size"))
        before = (torch.tensor(lengths) - q_lens).repeat_interleave(q_lens)
        output, lse = outputs
        return output, lse + before[:, None] * torch.tensor(slopes) / math.log(2.0)

    changes = {
        "ALiBi of the other sign": [-slope for slope in slopes],
        "ALiBi's first slope is 1": [1.0, *slopes[:-1]],
        "ALiBi scaled as the logits": [slope / math.sqrt(128) for slope in slopes],
        "ALiBi in base 2": [slope * math.log(2.0) for slope in slopes],
        "ALiBi of the heads in reverse": slopes[::-1],
    }
    if heads & (heads - 1):
        every = [2.0 ** (-8.0 * (h + 1) / heads) for h in range(heads)]
        changes["ALiBi of a power of 2 for all heads"] = every
    return [
        *(_as(definition, name, of(*changed)) for name, changed in changes.items()),
        _as(definition, "ALiBi missing", of()),
        _as(definition, "ALiBi missing in the LSE", of(), outputs="lse"),
        _as(definition, "ALiBi missing in the output", of(), outputs="output"),
        on_outputs(definition, "ALiBi's distance from the first key", from_first_key),
    ]


def mask_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of reading the input custom_mask; none where there is none."""
    if not has_mask(definition):
        return ()

    def rows(inputs: Inputs) -> list[torch.Tensor]:
        q_lens = query_starts(inputs).diff().tolist()
        lengths = key_lengths(inputs, definition.axes["page_size"])
        shapes = list(zip(q_lens, lengths, strict=True))
        return mask_rows(inputs["custom_mask"], shapes)

    def each(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda inputs: {
            "custom_mask": torch.cat([change(mask).flatten() for mask in rows(inputs)])
        }

    def all_before(mask: torch.Tensor) -> torch.Tensor:
        q_len, kv_len = mask.shape
        before = torch.arange(kv_len) < kv_len - q_len
        return mask | (before & mask.any(dim=1, keepdim=True))

    def of_first(inputs: Inputs) -> dict[str, Any]:
        # every sequence reads from the start of the mask
        parts = [inputs["custom_mask"][: mask.numel()] for mask in rows(inputs)]
        return {"custom_mask": torch.cat(parts)}

    changes: dict[str, Change] = {
        "mask transposed": each(lambda mask: mask.T.contiguous()),
        "mask inverted": each(lambda mask: ~mask),
        "mask ignored": each(torch.ones_like),
        "mask of the queries in reverse": each(lambda mask: mask.flip(0)),
        "all keys before the tree seen": each(all_before),
        "mask of the first sequence": of_first,
        "mask one element late": lambda i: {"custom_mask": i["custom_mask"].roll(1)},
    }
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def _of_mask(definition: Definition, variant: Variant) -> list[DomainMutant]:
    def added(inputs: Inputs) -> tuple[dict[str, Any], Variant]:
        return {"custom_mask": inputs["custom_mask"].double()}, variant

    defects = mask_mutants(definition)
    return [*defects, _as(definition, "mask added as 0 or 1", added)]


def _of_scales(definition: Definition, variant: Variant) -> list[DomainMutant]:
    defects = scale_mutants(definition, "k_scale", "v_scale")
    if "q_scale" in definition.interface.inputs:
        defects += scale_mutants_of_heads(definition)
    for output in ("lse", "output"):
        name = f"k_scale missing in the {output}"
        wrong: Wrong = lambda i: ({"k_scale": i["k_scale"] ** 0}, variant)
        defects.append(_as(definition, name, wrong, outputs=output))
    return defects


def _as_if_nhd(inputs: Inputs) -> dict[str, Any]:
    """Read the memory of pages in layout HND as if it were in layout NHD."""
    caches = {}
    for name in ("k_cache", "v_cache"):
        pages, heads, slots, dim = inputs[name].shape
        read = inputs[name].view(pages, slots, heads, dim)
        caches[name] = read.transpose(1, 2).contiguous()
    return caches


def _of_float16(definition: Definition) -> list[DomainMutant]:
    def narrower(outputs: Outputs, inputs: Inputs) -> Outputs:
        output, lse = outputs
        return output.bfloat16().to(output.dtype), lse

    def queries(inputs: Inputs) -> dict[str, Any]:
        return {"q": inputs["q"].bfloat16().to(inputs["q"].dtype)}

    return [
        on_outputs(definition, "output rounded to bfloat16", narrower),
        on_inputs(definition, "queries rounded to bfloat16", queries),
    ]


def _as(
    definition: Definition, name: str, wrong: Wrong, outputs: str = "output lse"
) -> DomainMutant:
    """Return the mutant that replaces `outputs` by those of another variant."""

    def call(run: Run, inputs: dict[str, Any]) -> Outputs:
        right = dict(zip(("output", "lse"), run(*inputs.values()), strict=True))
        changed, variant = wrong(inputs)
        altered = {**inputs, **changed}
        if is_paged(definition):
            k, v = (switched(definition, altered[n]) for n in ("k_cache", "v_cache"))
            of_q, *scales = (
                over_heads(altered.get(f"{name}_scale", 1.0))
                for name in ("q", "k", "v")
            )
            q = altered["q"].double() * of_q
            attended = oracle_paged(q, k, v, altered, variant, tuple(scales))
        else:
            attended = oracle_ragged(altered, variant)
        replaced = dict(zip(("output", "lse"), attended, strict=True))
        return tuple(
            replaced[part].to(value.dtype) if part in outputs.split() else value
            for part, value in right.items()
        )

    return calling(definition, name, call)
