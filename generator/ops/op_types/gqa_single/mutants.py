"""Domain mutants of one sequence's attention: those of attention, and of its mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.attention.mutants import gqa_mutants
from generator.ops.attention.oracle import oracle_attention
from generator.ops.attention.variant import Variant, variant_of
from generator.ops.mutants import DomainMutant, Inputs, MutantGroup, computed
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
# a query that sees all keys sees one
_OF_NO_KEY = ("LSE of no key a finite number", "output of no key not a number")
_INTERLEAVED = "query head h reads KV head h % kv for h // ratio"


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of a prefill or a decode."""
    several = "q_len" in (definition.interface.input_specs["q"].shape or ())
    causal = several and variant_of(definition).causal
    defects = [
        mutant
        for mutant in gqa_mutants(definition)
        if causal or mutant.name not in _OF_NO_KEY
    ]
    if not several:
        defects = [mutant for mutant in defects if mutant.name != _INTERLEAVED]
        defects.append(computed(definition, _INTERLEAVED, _interleaved))
    if causal:
        defects += [
            computed(definition, name, _masked(visible))
            for name, visible in _MASKS.items()
        ]
    elif several:
        defects.append(computed(definition, "causal mask left on", _causal))
    return tuple(defects)


# inputs → output and LSE in float64
Wrong = Callable[[Inputs], tuple[torch.Tensor, torch.Tensor]]


def _attended(inputs: Inputs, q: torch.Tensor, keys: int, **options: Any) -> Any:
    k, v = inputs["k"][:keys], inputs["v"][:keys]
    return oracle_attention(q, k, v, inputs["sm_scale"], **options)


def _interleaved(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    heads, kv_heads = len(inputs["q"]), inputs["k"].shape[1]
    order = torch.arange(heads).reshape(-1, kv_heads).T.flatten()
    output, lse = _attended(inputs, inputs["q"][order][None], len(inputs["k"]))
    back = order.argsort()
    return output[0][back], lse[0][back]


def _causal(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    attended: tuple[torch.Tensor, torch.Tensor] = _attended(
        inputs, inputs["q"], len(inputs["k"])
    )
    return attended


def _masked(visible: Visible) -> Wrong:
    """Return attention in which each query sees another number of keys."""

    def wrong(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        queries, keys = len(inputs["q"]), len(inputs["k"])
        parts = [
            _attended(
                inputs,
                inputs["q"][i : i + 1],
                min(max(visible(i, queries, keys), 0), keys),
                variant=Variant(causal=False),
            )
            for i in range(queries)
        ]
        outputs, lses = zip(*parts, strict=True)
        return torch.cat(outputs), torch.cat(lses)

    return wrong


MUTANTS = (MutantGroup(mutants, "q k v sm_scale output lse num_qo_heads num_kv_heads"),)
