"""Domain mutants of prefill on decode: masks, scale, keys of the other part, pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from generator.ops.attention import paged_mutants as paged
from generator.ops.attention.oracle import oracle_attention, oracle_paged
from generator.ops.attention.variant import Variant
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from kernel_judge.definition import Definition

# (query, queries, keys) → the number of keys that the query sees; correct is query +
# keys - queries + 1
Visible = Callable[[int, int, int], int]
_MASKS: dict[str, Visible] = {
    "mask aligned top-left": lambda i, queries, keys: i + 1,
    "mask missing": lambda i, queries, keys: keys,
    "mask one too strict": lambda i, queries, keys: keys - queries + i,
    "mask one too wide": lambda i, queries, keys: keys - queries + i + 2,
}
_CHANGES: dict[str, Change] = {
    "scale missing": lambda i: {"sm_scale": 1.0},
    "scale doubled": lambda i: {"sm_scale": 2.0 * i["sm_scale"]},
    "scale squared": lambda i: {"sm_scale": i["sm_scale"] ** 2},
    "scale of the head's length, not the given one": lambda i: {
        "sm_scale": 1.0 / math.sqrt(i["q_p"].shape[-1])
    },
    "K and V of the prefill swapped": lambda i: {"k_p": i["v_p"], "v_p": i["k_p"]},
    "K and V of the cache swapped": lambda i: {
        "k_cache": i["v_cache"],
        "v_cache": i["k_cache"],
    },
    "K and V of the next KV head": lambda i: {
        name: i[name].roll(1, -2) for name in ("k_p", "v_p", "k_cache", "v_cache")
    },
    "decode's queries of the next sequence": lambda i: {"q_d": i["q_d"].roll(1, 0)},
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of both parts."""
    changes = [on_inputs(definition, *change) for change in _CHANGES.items()]
    masks = [_with_mask(definition, *mask) for mask in _MASKS.items()]
    return (
        *changes,
        *masks,
        # sm_scale of run() is not plan()'s in FlashInfer
        _part(definition, "scale of the prefill 1 / sqrt(head_dim)", _usual_prefill, 0),
        _part(definition, "scale of the decodes 1 / sqrt(head_dim)", _usual_decode, 1),
        _part(definition, "decodes read all pages", _all_pages, 1),
    )


# inputs → one output in float64
Wrong = Callable[[Inputs], torch.Tensor]


def _part(definition: Definition, name: str, wrong: Wrong, place: int) -> DomainMutant:
    """Return the mutant with another output in one place, rounded as that is."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        spoilt = list(outputs)
        spoilt[place] = wrong(inputs).to(outputs[place].dtype)
        return tuple(spoilt)

    return on_outputs(definition, name, spoil)


def _with_mask(definition: Definition, name: str, visible: Visible) -> DomainMutant:
    def wrong(inputs: Inputs) -> torch.Tensor:
        q, k, v = (inputs[n] for n in ("q_p", "k_p", "v_p"))
        seen = [min(max(visible(i, len(q), len(k)), 0), len(k)) for i in range(len(q))]
        no_mask = Variant(causal=False)
        parts = [
            oracle_attention(
                q[i : i + 1], k[:keys], v[:keys], inputs["sm_scale"], no_mask
            )[0]
            for i, keys in enumerate(seen)
        ]
        return torch.cat(parts)

    return _part(definition, name, wrong, 0)


def _usual_scale(inputs: Inputs) -> float:
    return 1.0 / math.sqrt(inputs["q_p"].shape[-1])


def _usual_prefill(inputs: Inputs) -> torch.Tensor:
    q, k, v = (inputs[n] for n in ("q_p", "k_p", "v_p"))
    return oracle_attention(q, k, v, _usual_scale(inputs))[0]


def _usual_decode(inputs: Inputs) -> torch.Tensor:
    return _decoded({**inputs, "sm_scale": _usual_scale(inputs)})


def _decoded(inputs: Inputs) -> torch.Tensor:
    caches = inputs["k_cache"], inputs["v_cache"]
    return oracle_paged(inputs["q_d"], *caches, inputs)[0]


def _all_pages(inputs: Inputs) -> torch.Tensor:
    """Attend over the whole cache, as FlashInfer's own reference does."""
    k, v = (inputs[name].flatten(0, 1) for name in ("k_cache", "v_cache"))
    no_mask: Any = Variant(causal=False)
    return oracle_attention(inputs["q_d"], k, v, inputs["sm_scale"], no_mask)[0]


MUTANTS = (
    MutantGroup(mutants, "q_p k_p v_p q_d k_cache v_cache sm_scale output_p output_d"),
    MutantGroup(paged.mutants, paged.PAGES),
)
