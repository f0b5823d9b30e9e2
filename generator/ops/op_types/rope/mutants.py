"""Domain mutants of rotary embedding: pairs, signs, rotary_dim, positions."""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
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
)
from generator.testing.definition import Definition
from generator.testing.trial import as_tuple


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that head_size and rotary_dim allow."""
    size, rotary = definition.axes["head_size"], definition.axes["rotary_dim"]
    half = rotary // 2
    changes: dict[str, Change] = {
        "sin negated": lambda i: _cache(i, lambda cos, sin: (cos, -sin)),
        "cos and sin swapped": lambda i: _cache(i, lambda cos, sin: (sin, cos)),
        "sin missing": lambda i: _cache(i, lambda cos, sin: (cos, 0 * sin)),
        "positions ignored": lambda i: {
            "positions": torch.arange(len(i["positions"])) % len(i["cos_sin_cache"])
        },
        "positions of the first token": lambda i: {
            "positions": i["positions"][:1].expand_as(i["positions"]).contiguous()
        },
        "positions one too far": lambda i: {
            "positions": (i["positions"] + 1) % len(i["cos_sin_cache"])
        },
    }
    if half > 1:
        changes["frequencies reversed"] = lambda i: _cache(
            i, lambda cos, sin: (cos.flip(1), sin.flip(1))
        )
    found = [on_inputs(definition, name, change) for name, change in changes.items()]
    found += [
        on_outputs(definition, "q not turned", lambda o, i: (i["q"].clone(), o[1])),
        on_outputs(definition, "k not turned", lambda o, i: (o[0], i["k"].clone())),
    ]
    if half > 1:
        neox = definition.constants["is_neox"]
        name = "pairs interleaved" if neox else "pairs half a head apart"
        found.append(_reordered(definition, name, _other_pairs(rotary, neox)))
    if rotary < size:
        found.append(
            on_outputs(definition, "dimensions behind rotary_dim zero", _cut(rotary))
        )
        found.append(_turned_at_the_end(definition, rotary))
        if size % rotary == 0:
            found.append(_whole_head(definition, size, rotary))
    return tuple(found)


def _cache(inputs: Inputs, change: Any) -> dict[str, Any]:
    cos, sin = inputs["cos_sin_cache"].chunk(2, dim=1)
    return {"cos_sin_cache": torch.cat(change(cos, sin), dim=1)}


def _other_pairs(rotary: int, neox: bool) -> torch.Tensor:
    """Return the order of dimensions that turns one style's pairs into the other's."""
    pairs = torch.arange(rotary).view(-1, 2)
    return pairs.T.flatten() if neox else pairs.flatten().view(2, -1).T.flatten()


def _reordered(definition: Definition, name: str, order: torch.Tensor) -> DomainMutant:
    """Return the mutant that rotates reordered dimensions and restores their order."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        rest = torch.arange(len(order), inputs["q"].shape[-1])
        whole = torch.cat([order, rest])
        given = {**inputs, **{n: inputs[n][..., whole].contiguous() for n in "qk"}}
        back = whole.argsort()
        return tuple(part[..., back] for part in as_tuple(run(*given.values())))

    return calling(definition, name, call)


def _turned_at_the_end(definition: Definition, rotary: int) -> DomainMutant:
    size = definition.axes["head_size"]
    order = torch.arange(size).roll(rotary)
    return _reordered(definition, "last dimensions turned, not the first", order)


def _cut(rotary: int) -> Any:
    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        found = tuple(output.clone() for output in outputs)
        for output in found:
            output[..., rotary:] = 0
        return found

    return spoil


def _whole_head(definition: Definition, size: int, rotary: int) -> DomainMutant:
    """Return the mutant that ignores rotary_dim and rotates whole heads.

    It pairs dimensions half a head apart, and repeats the angles. It calls run() once for
    each rotary_dim dimensions, moved to the front.
    """
    half = rotary // 2
    firsts = [torch.arange(start, start + half) for start in range(0, size // 2, half)]
    parts = [torch.cat([first, first + size // 2]) for first in firsts]

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        found = tuple(inputs[name].clone() for name in "qk")
        for part in parts:
            others = torch.tensor(sorted(set(range(size)) - set(part.tolist())))
            order = torch.cat([part, others])
            given = {**inputs, **{n: inputs[n][..., order].contiguous() for n in "qk"}}
            turned = as_tuple(run(*given.values()))
            for whole, output in zip(found, turned, strict=True):
                whole[..., part] = output[..., :rotary]
        return found

    return calling(definition, "rotary_dim ignored", call)


MUTANTS = (
    MutantGroup(mutants, "q k cos_sin_cache positions head_size rotary_dim is_neox"),
    MutantGroup(rounded_inputs, "q k cos_sin_cache"),
)
