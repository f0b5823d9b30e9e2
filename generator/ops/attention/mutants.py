"""Domain mutants of attention, paged or ragged: mask, scale, LSE, heads, caches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from generator.ops.attention.cases import QK_NOPE_HEAD_DIM
from generator.ops.attention.sequences import is_prefill, one_query_each
from generator.ops.attention.variant import has_sinks, variant_of
from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    Outputs,
    Run,
    calling,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.paging import key_lengths
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple

# (query, queries, keys) of a sequence → the number of keys that the query sees; correct
# is query + keys - queries + 1
Visible = Callable[[int, int, int], int]
_MASKS: dict[str, Visible] = {
    "mask aligned top-left": lambda i, queries, keys: i + 1,
    "mask missing": lambda i, queries, keys: keys,
    "mask one too strict": lambda i, queries, keys: keys - queries + i,
    "mask one too wide": lambda i, queries, keys: keys - queries + i + 2,
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of any attention with a scale and an LSE."""
    causal = is_prefill(definition) and variant_of(definition).causal
    masks = _MASKS if causal else {}
    return (
        *_of_lse(definition),
        *_of_scale(definition),
        *(_with_mask(definition, name, seen) for name, seen in masks.items()),
    )


def gqa_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of attention with separate keys and values."""
    axes = definition.axes
    heads, kv_heads = axes["num_qo_heads"], axes["num_kv_heads"]
    key, value = _caches(definition)
    defects = [*mutants(definition)]
    specs = definition.interface.input_specs
    same = _lengths(definition, key)[-1] == _lengths(definition, value)[-1]
    if same:
        defects.append(
            on_inputs(
                definition, "K and V swapped", lambda i: {key: i[value], value: i[key]}
            )
        )
        defects.append(
            on_inputs(definition, "K taken for V", lambda i: {value: i[key]})
        )
        defects.append(
            on_inputs(definition, "V taken for K", lambda i: {key: i[value]})
        )
    else:
        rest = _lengths(definition, value)[-1]
        defects += _of_longer_keys(definition, key, value, rest)
    if kv_heads > 1:
        axis = (specs[key].shape or ()).index("num_kv_heads")
        defects.append(
            on_inputs(
                definition,
                "K and V of the next KV head",
                lambda i: {n: shifted(i[n], axis) for n in (key, value)},
            )
        )
    if 1 < kv_heads < heads:
        defects.append(_interleaved(definition, kv_heads))
    return tuple(defects)


def _caches(definition: Definition) -> tuple[str, str]:
    names = definition.interface.inputs
    return ("k_cache", "v_cache") if "k_cache" in names else ("k", "v")


def _lengths(definition: Definition, name: str) -> list[int | None]:
    shape = definition.interface.input_specs[name].shape or ()
    return [definition.axes.get(axis) for axis in shape]


def _of_longer_keys(
    definition: Definition, key: str, value: str, rest: int | None
) -> list[DomainMutant]:
    """Return mutants of keys with a rotary part, which values lack."""

    def without_rotary(inputs: Inputs) -> dict[str, Any]:
        q = inputs["q"].clone()
        q[..., rest:] = 0
        return {"q": q}

    return [
        on_inputs(
            definition,
            "K taken for V",
            lambda i: {value: i[key][..., :rest].contiguous()},
        ),
        on_inputs(definition, "rotary part left out", without_rotary),
        on_inputs(
            definition,
            "scale of the values' length",
            lambda i: {"sm_scale": 1.0 / math.sqrt(i[value].shape[-1])},
        ),
    ]


def _of_lse(definition: Definition) -> list[DomainMutant]:
    def change(name: str, function: Callable[[torch.Tensor], Any]) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            output, lse = outputs
            return output, function(lse)

        return on_outputs(definition, name, spoil)

    def not_a_number(outputs: Outputs, inputs: Inputs) -> Outputs:
        output, lse = outputs
        output = output.clone()
        output[lse == -math.inf] = math.nan
        return output, lse

    defects = [
        change("LSE in natural logarithm", lambda e: e * math.log(2.0)),
        change("LSE in base 10", lambda e: e * math.log10(2.0)),
        # the logarithm of the shifted sum, with the maximum not added back
        change("LSE without the maximum", lambda e: e - e.round()),
    ]
    if has_sinks(definition):
        # without a key the sum is of the sink alone, and finite
        return defects
    return [
        *defects,
        change(
            "LSE of no key a finite number", lambda e: torch.nan_to_num(e, neginf=-5e4)
        ),
        on_outputs(definition, "output of no key not a number", not_a_number),
    ]


def _of_scale(definition: Definition) -> list[DomainMutant]:
    return [
        on_inputs(definition, "scale missing", lambda i: {"sm_scale": 1.0}),
        on_inputs(
            definition, "scale doubled", lambda i: {"sm_scale": 2.0 * i["sm_scale"]}
        ),
        on_inputs(
            definition, "scale squared", lambda i: {"sm_scale": i["sm_scale"] ** 2}
        ),
        on_inputs(
            definition,
            "scale of the head's length, not the given one",
            lambda i: {"sm_scale": _usual_scale(definition)},
        ),
    ]


def _usual_scale(definition: Definition) -> float:
    """Return 1 / sqrt(head length), the scale of a reference that ignores its input."""
    axes = definition.axes
    if "head_dim_ckv" in axes:
        return 1.0 / math.sqrt(QK_NOPE_HEAD_DIM + axes["head_dim_kpe"])
    key = _caches(definition)[0]
    return 1.0 / math.sqrt(_lengths(definition, key)[-1] or 1)


def _interleaved(definition: Definition, kv_heads: int) -> DomainMutant:
    """Return the mutant whose query head h reads KV head h % kv_heads."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        heads = inputs["q"].shape[1]
        order = torch.arange(heads).reshape(-1, kv_heads).T.flatten()
        reordered = {**inputs, "q": inputs["q"][:, order].contiguous()}
        back = order.argsort()
        return tuple(part[:, back] for part in as_tuple(run(*reordered.values())))

    return calling(definition, "query head h reads KV head h % kv for h // ratio", call)


def _with_mask(definition: Definition, name: str, visible: Visible) -> DomainMutant:
    """Return the mutant with another mask; it runs each query as its own sequence."""
    page_size = definition.axes.get("page_size")

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        starts = inputs["qo_indptr"].tolist()
        parts = []
        for sequence, keys in enumerate(key_lengths(inputs, page_size)):
            queries = starts[sequence + 1] - starts[sequence]
            counts = [
                min(max(visible(i, queries, keys), 0), keys) for i in range(queries)
            ]
            if counts:
                single = one_query_each(inputs, page_size, sequence, counts)
                parts.append(as_tuple(run(*single.values())))
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    return calling(definition, name, call)


ATTENTION = "kv_indptr sm_scale output lse num_qo_heads"
"""Names that the mutants of any attention read."""
