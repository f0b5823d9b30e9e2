"""The defects of gated activations: the halves, the sigmoid, the roundings."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.functional import gelu, silu

from generator.ops.mutants import (
    DomainMutant,
    Inputs,
    MutantGroup,
    Outputs,
    on_inputs,
    on_outputs,
)
from generator.testing.definition import Definition

Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# from gate and up, float32 [num_tokens, intermediate_size] each, to the output
_FORMULAS: dict[str, Formula] = {
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


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of silu(gate)·up."""
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
        *(_instead(definition, name, made) for name, made in _FORMULAS.items()),
    )


def _instead(definition: Definition, name: str, formula: Formula) -> DomainMutant:
    """Return the mutant that computes another formula."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        gate, up = inputs["input"].float().chunk(2, dim=1)
        return (formula(gate, up).to(outputs[0].dtype),)

    return on_outputs(definition, name, spoil)


MUTANTS = (MutantGroup(mutants, "input output intermediate_size gate_up_size"),)
