"""Domain mutants of rotary embedding: pairs, signs, rotary_dim, positions, norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from generator.ops.common_mutants import rounded_inputs
from generator.ops.head_norm_mutants import (
    Divisor,
    divided_otherwise,
    neutral_weight,
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
)
from generator.ops.op_types.rope.angles import axes_of_pairs, frequencies
from kernel_judge.definition import Definition
from kernel_judge.inputs.trial import as_tuple


def of_cache(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that read other rows of the cache, or read them otherwise."""
    changes: dict[str, Change] = {
        "sin negated": lambda i: _cache(i, lambda cos, sin: (cos, -sin)),
        "cos and sin swapped": lambda i: _cache(i, lambda cos, sin: (sin, cos)),
        "sin missing": lambda i: _cache(i, lambda cos, sin: (cos, 0 * sin)),
        "positions ignored": lambda i: {
            "positions": _counted(i["positions"]) % len(i["cos_sin_cache"])
        },
        "positions of the first token": lambda i: {"positions": _first(i["positions"])},
        "positions one too far": lambda i: {
            "positions": (i["positions"] + 1) % len(i["cos_sin_cache"])
        },
    }
    if definition.axes["rotary_dim"] > 2:
        changes["frequencies reversed"] = lambda i: _cache(
            i, lambda cos, sin: (cos.flip(1), sin.flip(1))
        )
    return tuple(
        on_inputs(definition, name, change) for name, change in changes.items()
    )


def _counted(positions: torch.Tensor) -> torch.Tensor:
    counted = torch.arange(positions.shape[-1], dtype=positions.dtype)
    return counted.expand_as(positions).contiguous()


def _first(positions: torch.Tensor) -> torch.Tensor:
    return positions[..., :1].expand_as(positions).contiguous()


def _cache(inputs: Inputs, change: Any) -> dict[str, Any]:
    cos, sin = inputs["cos_sin_cache"].chunk(2, dim=1)
    return {"cos_sin_cache": torch.cat(change(cos, sin), dim=1)}


def of_turns(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that turn other dimensions, or one of the outputs alone."""
    size = definition.axes["head_size"]
    rotary = definition.axes.get("rotary_dim", size)
    defects = []
    if "q_weight" not in definition.interface.inputs:
        defects += [
            on_outputs(definition, "q not turned", lambda o, i: (i["q"].clone(), o[1])),
            on_outputs(definition, "k not turned", lambda o, i: (o[0], i["k"].clone())),
        ]
    if rotary > 2:
        neox = definition.constants["is_neox"]
        name = "pairs interleaved" if neox else "pairs half a head apart"
        defects.append(_reordered(definition, name, _other_pairs(rotary, neox)))
    if rotary < size:
        defects.append(
            on_outputs(definition, "dimensions behind rotary_dim zero", _cut(rotary))
        )
        defects.append(_turned_at_the_end(definition, rotary))
        if size % rotary == 0:
            defects.append(_whole_head(definition, size, rotary))
    return tuple(defects)


def _other_pairs(rotary: int, neox: bool) -> torch.Tensor:
    """Return the order of dimensions that turns one style's pairs into the other's."""
    pairs = torch.arange(rotary).view(-1, 2)
    return pairs.T.flatten() if neox else pairs.flatten().view(2, -1).T.flatten()


def _in_order(inputs: Inputs, order: torch.Tensor) -> dict[str, Any]:
    """Return the inputs with heads and weights whose dimensions stand in an order."""
    names = [name for name in ("q", "k", "q_weight", "k_weight") if name in inputs]
    return {**inputs, **{n: inputs[n][..., order].contiguous() for n in names}}


def _reordered(definition: Definition, name: str, order: torch.Tensor) -> DomainMutant:
    """Return the mutant that rotates reordered dimensions and restores their order."""

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        rest = torch.arange(len(order), inputs["q"].shape[-1])
        whole = torch.cat([order, rest])
        back = whole.argsort()
        outputs = as_tuple(run(*_in_order(inputs, whole).values()))
        return tuple(part[..., back] for part in outputs)

    return calling(definition, name, call)


def _turned_at_the_end(definition: Definition, rotary: int) -> DomainMutant:
    size = definition.axes["head_size"]
    order = torch.arange(size).roll(rotary)
    return _reordered(definition, "last dimensions turned, not the first", order)


def _cut(rotary: int) -> Any:
    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        spoilt = tuple(output.clone() for output in outputs)
        for output in spoilt:
            output[..., rotary:] = 0
        return spoilt

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
        heads = tuple(inputs[name].clone() for name in "qk")
        for part in parts:
            others = torch.tensor(sorted(set(range(size)) - set(part.tolist())))
            reordered = _in_order(inputs, torch.cat([part, others]))
            turned = as_tuple(run(*reordered.values()))
            for whole, output in zip(heads, turned, strict=True):
                whole[..., part] = output[..., :rotary]
        return heads

    return calling(definition, "rotary_dim ignored", call)


def of_axes(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that turn pairs by another of the three positions."""
    constants, half = definition.constants, definition.axes["rotary_dim"] // 2
    orders = {
        "height and width swapped": [0, 2, 1],
        "axes in reverse": [2, 1, 0],
        "temporal position for all": [0, 0, 0],
        "width for all": [2, 2, 2],
    }
    defects = [
        on_inputs(definition, name, partial(_permuted, order))
        for name, order in orders.items()
    ]
    style = not constants["axes_interleaved"]
    name = "sections interleaved" if style else "sections one after the other"
    maps = {name: axes_of_pairs(half, {**constants, "axes_interleaved": style})}
    if style:
        maps["sections in reverse"] = axes_of_pairs(half, constants)[::-1]
    elif 3 * min(constants["height"], constants["width"]) < half - 2:
        maps["interleaved to the end"] = [pair % 3 for pair in range(half)]
    return (
        *defects,
        *(_by_map(definition, name, wrong) for name, wrong in maps.items()),
    )


def _permuted(order: list[int], inputs: Inputs) -> dict[str, Any]:
    return {"positions": inputs["positions"][order]}


def _by_map(definition: Definition, name: str, axes: list[int]) -> DomainMutant:
    """Return the mutant that turns each pair by the position on the axis named for it."""
    axis_of = torch.tensor(axes)
    if definition.constants["is_neox"]:
        axis_of = torch.cat([axis_of, axis_of])
    else:
        axis_of = axis_of.repeat_interleave(2)

    def call(run: Run, inputs: dict[str, Any]) -> Any:
        heads = tuple(inputs[name].clone() for name in "qk")
        for axis in range(3):
            place = inputs["positions"][axis : axis + 1].expand(3, -1).contiguous()
            turned = as_tuple(run(*{**inputs, "positions": place}.values()))
            dims = (axis_of == axis).nonzero()[:, 0]
            for whole, output in zip(heads, turned, strict=True):
                whole[..., dims] = output[..., dims]
        return heads

    return calling(definition, name, call)


def of_norms(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the norm of each head."""
    changes, divisors = wrong_weights(definition), wrong_divisors(definition)
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(_divided(definition, name, divisor) for name, divisor in divisors.items()),
        _weighed_at_the_end(definition, neutral_weight(definition)),
    )


def _divided(definition: Definition, name: str, divisor: Divisor) -> DomainMutant:
    """Return the mutant that divides heads by another divisor."""
    eps = definition.constants["eps"]

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        pairs = zip(outputs, (inputs["q"], inputs["k"]), strict=True)
        return tuple(divided_otherwise(o, heads, eps, divisor) for o, heads in pairs)

    return on_outputs(definition, name, spoil)


def _weighed_at_the_end(definition: Definition, one: float) -> DomainMutant:
    def call(run: Run, inputs: dict[str, Any]) -> Any:
        names = ("q_weight", "k_weight")
        plain = {name: torch.full_like(inputs[name], one) for name in names}
        heads = as_tuple(run(*{**inputs, **plain}.values()))
        weights = (inputs[name].float() + (1.0 - one) for name in names)
        return tuple(
            (output.float() * weight).to(output.dtype)
            for output, weight in zip(heads, weights, strict=True)
        )

    return calling(definition, "weights after the turn", call)


def of_positions(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants that turn by other frequencies, or other positions."""
    constants, size = definition.constants, definition.axes["head_size"]
    changes: dict[str, Change] = {
        "positions ignored": lambda i: {"pos_ids": _counted(i["pos_ids"])},
        "positions of the first token": lambda i: {"pos_ids": _first(i["pos_ids"])},
        "positions one too far": lambda i: {"pos_ids": i["pos_ids"] + 1},
        "turned backwards": lambda i: {"pos_ids": -i["pos_ids"]},
    }
    factor, right = frequencies(size, constants)
    theta = {**constants, "rope_theta": 2 * constants["rope_theta"]}
    wrong = {
        "theta twice as large": frequencies(size, theta)[1],
        "exponents half as large": right.sqrt(),
        "exponents of the next pair": right.roll(-1),
        "degrees for radians": right / math.degrees(1.0),
    }
    factors: dict[str, float] = {}
    if "rope_scale" in constants:
        scale = constants["rope_scale"]
        plain = frequencies(size, {"rope_theta": constants["rope_theta"]})[1]
        wrong |= {
            "frequencies not scaled": plain,
            "all frequencies scaled": plain / scale,
            "scale times for divided": plain * plain / right,
            "ramp turned over": plain + plain / scale - right,
        }
        usual = 1.0 + 0.1 * math.log(scale)
        factors["factor missing" if factor > 1.0 else "factor of YaRN"] = (
            1.0 if factor > 1.0 else usual
        )
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(_turned_by(definition, name, factor, f) for name, f in wrong.items()),
        *(_turned_by(definition, name, f, right) for name, f in factors.items()),
    )


def _turned_by(
    definition: Definition, name: str, factor: float, steps: torch.Tensor
) -> DomainMutant:
    """Return the mutant that turns by other radians a position, and another factor."""
    neox = definition.constants["is_neox"]

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        angles = torch.outer(inputs["pos_ids"].double(), steps)[:, None]
        cos, sin = factor * angles.cos(), factor * angles.sin()
        return tuple(_turned(inputs[name], cos, sin, neox) for name in "qk")

    return on_outputs(definition, name, spoil)


def _turned(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, neox: bool
) -> torch.Tensor:
    half, dim = x.shape[-1] // 2, -2 if neox else -1
    pairs = x.double().view(*x.shape[:-1], *((2, half) if neox else (half, 2)))
    first, second = pairs.unbind(dim)
    turned = torch.stack((first * cos - second * sin, second * cos + first * sin), dim)
    return turned.flatten(-2).to(x.dtype)


_Needs = Mapping[str, Callable[[Definition], tuple[DomainMutant, ...]]]
_GROUPS: _Needs = {
    "cos_sin_cache positions rotary_dim": of_cache,
    "q k head_size is_neox": of_turns,
    "positions num_axes axes_interleaved": of_axes,
    "q_weight k_weight head_size eps unit_offset": of_norms,
    "pos_ids head_size rope_theta": of_positions,
    "q k cos_sin_cache": rounded_inputs,
}
MUTANTS = tuple(MutantGroup(made, needs) for needs, made in _GROUPS.items())
