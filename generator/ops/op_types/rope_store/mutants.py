"""The defects of rotations that are stored: slots, rows, pairs, positions and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.head_norm_mutants import (
    Divisor,
    divided_otherwise,
    wrong_divisors,
    wrong_weights,
)
from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    Run,
    calling,
    on_inputs,
    on_outputs,
    shifted,
)
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple


def of_slots(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which row goes to which slot, and of what stays."""
    changes: dict[str, Change] = {
        "slots in order": lambda i: {
            "slot_mapping": torch.arange(
                len(i["slot_mapping"]), device=i["slot_mapping"].device
            )
        },
        "slot of the token before": lambda i: {
            "slot_mapping": i["slot_mapping"].roll(1)
        },
        "slots sorted": lambda i: {"slot_mapping": i["slot_mapping"].sort().values},
    }

    def unwritten(places: Callable[[Inputs], torch.Tensor]) -> Any:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            slots = places(inputs)
            results = [out.clone() for out in outputs[1:]]
            for out, name in zip(results, ("k_cache", "v_cache"), strict=True):
                out[slots] = inputs[name][slots]
            return (outputs[0], *results)

        return spoil

    def cleared(outputs: Outputs, inputs: Inputs) -> Outputs:
        results = [torch.zeros_like(out) for out in outputs[1:]]
        for out, right in zip(results, outputs[1:], strict=True):
            out[inputs["slot_mapping"]] = right[inputs["slot_mapping"]]
        return (outputs[0], *results)

    def zero(inputs: Inputs) -> torch.Tensor:
        return torch.zeros(1, dtype=torch.int64, device=inputs["k_cache"].device)

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "slot 0 taken as padding", unwritten(zero)),
        on_outputs(
            definition,
            "last token not stored",
            unwritten(lambda i: i["slot_mapping"][-1:]),
        ),
        on_outputs(definition, "rest of the cache cleared", cleared),
        on_outputs(
            definition,
            "values not stored",
            lambda o, i: (o[0], o[1], i["v_cache"].clone()),
        ),
        on_outputs(
            definition,
            "keys not stored",
            lambda o, i: (o[0], i["k_cache"].clone(), o[2]),
        ),
    )


def of_rows(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which heads turn, and by which row of the cache."""

    def cosines(change: Callable[..., Any]) -> Change:
        def of(inputs: Inputs) -> dict[str, torch.Tensor]:
            cos, sin = inputs["cos_sin_cache"].chunk(2, dim=1)
            return {"cos_sin_cache": torch.cat(change(cos, sin), dim=1)}

        return of

    changes: dict[str, Change] = {
        "keys and values swapped": lambda i: {"k": i["v"], "v": i["k"]},
        "keys as values": lambda i: {"v": i["k"]},
        "values of the token before": lambda i: {"v": shifted(i["v"], 0)},
        "heads of keys shifted": lambda i: {"k": i["k"].roll(1, 2)},
        "sin negated": cosines(lambda cos, sin: (cos, -sin)),
        "cos and sin swapped": cosines(lambda cos, sin: (sin, cos)),
        "frequencies reversed": cosines(lambda cos, sin: (cos.flip(1), sin.flip(1))),
        "position of the next token": lambda i: {"positions": i["positions"].roll(-1)},
        "position of the slot": lambda i: {
            "positions": i["slot_mapping"] % len(i["cos_sin_cache"])
        },
        "positions one too far": lambda i: {
            "positions": (i["positions"] + 1) % len(i["cos_sin_cache"])
        },
    }

    def turned_values(run: Run, inputs: dict[str, Any]) -> Any:
        q, keys, _ = as_tuple(run(*inputs.values()))
        changed: dict[str, Any] = {**inputs, "k": inputs["v"]}
        changed["k_cache"] = inputs["v_cache"]
        return q, keys, as_tuple(run(*changed.values()))[1]

    def plain_keys(outputs: Outputs, inputs: Inputs) -> Outputs:
        keys = outputs[1].clone()
        keys[inputs["slot_mapping"]] = inputs["k"]
        return outputs[0], keys, outputs[2]

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        calling(definition, "values turned as well", turned_values),
        on_outputs(definition, "keys stored before the turn", plain_keys),
        on_outputs(
            definition, "queries not turned", lambda o, i: (i["q"].clone(), *o[1:])
        ),
    )


def of_pairs(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which dimensions turn together."""
    size, rotary = definition.axes["head_size"], definition.axes["rotary_dim"]
    pairs = torch.arange(rotary).view(-1, 2)
    neox = definition.constants["is_neox"]
    other = pairs.T.flatten() if neox else pairs.flatten().view(2, -1).T.flatten()
    results = [_reordered(definition, "pairs of the other style", other)]
    if rotary < size:
        order = torch.arange(size).roll(rotary)
        name = "last dimensions turned, not the first"
        results.append(_reordered(definition, name, order))
    return tuple(results)


def _reordered(definition: Definition, name: str, order: torch.Tensor) -> DomainMutant:
    """Return the mutant that turns reordered dimensions and restores their order."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        rest = torch.arange(len(order), inputs["q"].shape[-1])
        whole = torch.cat([order, rest])
        names = [n for n in ("q", "k", "q_weight", "k_weight") if n in inputs]
        changed = dict(inputs)
        changed |= {n: inputs[n][..., whole].contiguous() for n in names}
        q, keys, values = as_tuple(run(*changed.values()))
        slots, back = inputs["slot_mapping"], whole.argsort()
        keys = keys.clone()
        keys[slots] = keys[slots][..., back]
        return q[..., back].contiguous(), keys, values

    return calling(definition, name, call)


def of_norms(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the norm of each head."""
    changes, divisors = wrong_weights(definition), wrong_divisors(definition)
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(_divided(definition, name, divisor) for name, divisor in divisors.items()),
    )


def _divided(definition: Definition, name: str, divisor: Divisor) -> DomainMutant:
    """Return the mutant that divides queries and keys by another divisor."""
    eps = definition.constants["eps"]

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        q, keys, values = outputs
        slots, keys = inputs["slot_mapping"], keys.clone()
        keys[slots] = divided_otherwise(keys[slots], inputs["k"], eps, divisor)
        return divided_otherwise(q, inputs["q"], eps, divisor), keys, values

    return on_outputs(definition, name, spoil)


MUTANTS = (
    MutantGroup(of_slots, "slot_mapping k_cache v_cache"),
    MutantGroup(of_rows, "k v cos_sin_cache positions slot_mapping"),
    MutantGroup(of_pairs, "q k head_size rotary_dim is_neox"),
    MutantGroup(of_norms, "q_weight k_weight head_size eps unit_offset"),
    MutantGroup(rounded_inputs, "q k cos_sin_cache"),
)
