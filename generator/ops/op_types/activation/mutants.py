"""The defects of activations: the halves, the function, the limits, the roundings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import gelu, silu

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    computed,
    on_inputs,
)
from kernel_judge.definition import Definition

Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# from gate and up, float32 [num_tokens, intermediate_size] each, to the output
_SILU: dict[str, Formula] = {
    "sigmoid missing": lambda gate, up: gate * up,
    "sigmoid alone": lambda gate, up: gate.sigmoid() * up,
    "sigmoid negated": lambda gate, up: gate * (-gate).sigmoid() * up,
    "gelu for silu": lambda gate, up: gelu(gate) * up,
    "gelu by tanh for silu": lambda gate, up: gelu(gate, approximate="tanh") * up,
    "gelu by sigmoid for silu": lambda gate, up: gate * (1.702 * gate).sigmoid() * up,
    "relu for silu": lambda gate, up: gate.relu() * up,
    "silu of the product": lambda gate, up: silu(gate * up),
    "silu of both": lambda gate, up: silu(gate) * silu(up),
    "silu twice": lambda gate, up: silu(silu(gate)) * up,
    "up ignored": lambda gate, up: silu(gate),
    "gate ignored": lambda gate, up: up,
    "up added": lambda gate, up: silu(gate) + up,
    "one added to up": lambda gate, up: silu(gate) * (up + 1.0),
    "gate clamped at 7": lambda gate, up: silu(gate.clamp(max=7.0)) * up,
    "up clamped at 7": lambda gate, up: silu(gate) * up.clamp(-7.0, 7.0),
    "silu rounded before the product": lambda gate, up: silu(gate).bfloat16() * up,
}
_GELU: dict[str, Formula] = {
    "silu for gelu": lambda gate, up: silu(gate) * up,
    "gelu by sigmoid": lambda gate, up: gate * (1.702 * gate).sigmoid() * up,
    "relu for gelu": lambda gate, up: gate.relu() * up,
    "gelu of the product": lambda gate, up: gelu(gate * up),
    "gelu twice": lambda gate, up: gelu(gelu(gate)) * up,
    "up ignored": lambda gate, up: gelu(gate),
    "gate ignored": lambda gate, up: up,
    "up added": lambda gate, up: gelu(gate) + up,
    "factor of 2 in the root missing": lambda gate, up: (
        gate * (1.0 + torch.erf(gate)) / 2.0 * up
    ),
    "half missing": lambda gate, up: 2.0 * gelu(gate) * up,
    "gelu rounded before the product": lambda gate, up: gelu(gate).bfloat16() * up,
}
_OAI: dict[str, Formula] = {
    "limits missing": lambda gate, up: _oai(gate, up),
    "limit of the gate missing": lambda gate, up: _oai(gate, up.clamp(-7.0, 7.0)),
    "limit of up missing": lambda gate, up: _oai(gate.clamp(max=7.0), up),
    "lower limit of up missing": lambda gate, up: _oai(
        gate.clamp(max=7.0), up.clamp(max=7.0)
    ),
    "gate limited below": lambda gate, up: _oai(
        gate.clamp(-7.0, 7.0), up.clamp(-7.0, 7.0)
    ),
    "up larger by one before its limit": lambda gate, up: _oai(
        gate.clamp(max=7.0), (up + 1.0).clamp(-7.0, 7.0) - 1.0
    ),
    "one not added to up": lambda gate, up: _oai(
        gate.clamp(max=7.0), up.clamp(-7.0, 7.0) - 1.0
    ),
    "alpha missing": lambda gate, up: (
        silu(gate.clamp(max=7.0)) * (up.clamp(-7.0, 7.0) + 1.0)
    ),
    "alpha on the gate": lambda gate, up: (
        silu(1.702 * gate.clamp(max=7.0)) * (up.clamp(-7.0, 7.0) + 1.0)
    ),
}
_CLAMP: dict[str, Formula] = {
    "limits missing": lambda gate, up: silu(gate) * up,
    "limit of the gate missing": lambda gate, up: silu(gate) * up.clamp(-10.0, 10.0),
    "limit of up missing": lambda gate, up: silu(gate.clamp(max=10.0)) * up,
    "lower limit of up missing": lambda gate, up: (
        silu(gate.clamp(max=10.0)) * up.clamp(max=10.0)
    ),
    "gate limited below": lambda gate, up: (
        silu(gate.clamp(-10.0, 10.0)) * up.clamp(-10.0, 10.0)
    ),
    "limit of 7": lambda gate, up: silu(gate.clamp(max=7.0)) * up.clamp(-7.0, 7.0),
    "limit of the product": lambda gate, up: (silu(gate) * up).clamp(-10.0, 10.0),
    "one added to up": lambda gate, up: (
        silu(gate.clamp(max=10.0)) * (up.clamp(-10.0, 10.0) + 1.0)
    ),
}
_RELU2: dict[str, Formula] = {
    "square missing": lambda x, _: x.relu(),
    "relu missing": lambda x, _: x.square(),
    "square of silu": lambda x, _: silu(x).square(),
    "square of gelu": lambda x, _: gelu(x).square(),
    "sign kept": lambda x, _: x * x.abs(),
    "relu of the negative": lambda x, _: (-x).relu().square(),
    "cube": lambda x, _: x.relu() ** 3,
    "relu limited at 6": lambda x, _: x.clamp(0.0, 6.0).square(),
}


def _oai(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate * (1.702 * gate).sigmoid() * (up + 1.0)


def of_gate(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of act(gate)·up, by the kind that a definition's name states."""
    constants = definition.constants
    if "oai" in constants:
        return (*_of_pairs(definition), *_formulas(definition, _OAI))
    formulas = _SILU
    if "limit" in constants:
        formulas = _CLAMP
    elif "tanh" in constants:
        formulas = {**_GELU, "erf for tanh": lambda gate, up: gelu(gate) * up}
    elif "gelu" in constants:
        formulas = {**_GELU, "tanh for erf": _by_tanh}
    return (*of_halves(definition), *_formulas(definition, formulas))


def _by_tanh(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gelu(gate, approximate="tanh") * up


def of_halves(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of gate and up, where a row is their halves."""
    size = definition.axes["intermediate_size"]

    def swapped(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"input": inputs["input"].roll(size, 1)}

    def interleaved(inputs: Inputs) -> dict[str, torch.Tensor]:
        x = inputs["input"]
        return {"input": torch.cat((x[:, ::2], x[:, 1::2]), dim=1)}

    def up_shifted(inputs: Inputs) -> dict[str, torch.Tensor]:
        gate, up = inputs["input"].chunk(2, dim=1)
        return {"input": torch.cat((gate, up.roll(1, 1)), dim=1)}

    return (
        on_inputs(definition, "gate and up swapped", swapped),
        on_inputs(definition, "gate and up interleaved", interleaved),
        on_inputs(definition, "up of the next column", up_shifted),
    )


def of_square(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of squared ReLU."""
    return tuple(_formulas(definition, _RELU2))


def _of_pairs(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of gate and up, where a row is pairs of them."""

    def swapped(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"input": inputs["input"].unflatten(1, (-1, 2)).flip(2).flatten(1)}

    def halves(inputs: Inputs) -> dict[str, torch.Tensor]:
        x = inputs["input"]
        return {"input": torch.stack(x.chunk(2, dim=1), dim=2).flatten(1)}

    return (
        on_inputs(definition, "gate and up swapped", swapped),
        on_inputs(definition, "halves for pairs", halves),
    )


def _formulas(
    definition: Definition, formulas: Mapping[str, Formula]
) -> list[DomainMutant]:
    return [_instead(definition, name, formula) for name, formula in formulas.items()]


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def wrong(inputs: Inputs) -> torch.Tensor:
        x = inputs["input"].float()
        if "oai" in definition.constants:
            return formula(x[:, ::2], x[:, 1::2])
        if "relu2" in definition.constants:
            return formula(x, x)
        return formula(*x.chunk(2, dim=1))

    return computed(definition, name, wrong)


MUTANTS = (
    MutantGroup(of_gate, "input output intermediate_size gate_up_size"),
    MutantGroup(of_square, "input output relu2"),
)
