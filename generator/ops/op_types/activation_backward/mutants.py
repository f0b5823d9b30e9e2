"""The defects of gradients of activations: slopes, halves, what is left out."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

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

# gradient, gate and up, float32 [num_tokens, intermediate_size], to those of both
Gated = Callable[
    [torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]
]
_GATED: dict[str, Gated] = {
    "slope of the gate 1": lambda g, x, u: (g * u, g * x * x.sigmoid()),
    "slope of the gate its sigmoid": lambda g, x, u: (
        g * u * x.sigmoid(),
        g * x * x.sigmoid(),
    ),
    "up missing": lambda g, x, u: (g * _slope(x), g * x * x.sigmoid()),
    "gate for its silu": lambda g, x, u: (g * u * _slope(x), g * x),
    "silu rounded to bfloat16": lambda g, x, u: (
        g * u * _slope(x),
        g * (x * x.sigmoid()).bfloat16().float(),
    ),
    "halves swapped": lambda g, x, u: (g * x * x.sigmoid(), g * u * _slope(x)),
    "slope of GELU": lambda g, x, u: (
        g * u * (1.702 * x).sigmoid(),
        g * x * x.sigmoid(),
    ),
    "gradient missing": lambda g, x, u: (u * _slope(x), x * x.sigmoid()),
}
_ROOT = math.sqrt(2.0 / math.pi)
# gradient and x, float32, to the gradient of x
_GELU: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "by the error function": lambda g, x: (
        g
        * (
            torch.special.ndtr(x)
            + x * torch.exp(-x * x / 2.0) / math.sqrt(2.0 * math.pi)
        )
    ),
    "slope of SiLU": lambda g, x: g * _slope(x),
    "second term missing": lambda g, x: g * _share(x),
    "cubic term missing in the slope": lambda g, x: (
        g * (_share(x) + 2.0 * _ROOT * x * _share(x) * (1.0 - _share(x)))
    ),
    "value for the slope": lambda g, x: g * x * _share(x),
    "slope of ReLU": lambda g, x: g * (x > 0.0),
    "gradient missing": lambda g, x: (
        _share(x)
        + 2.0 * _ROOT * x * (1.0 + 0.134145 * x * x) * _share(x) * (1.0 - _share(x))
    ),
}


def _slope(x: torch.Tensor) -> torch.Tensor:
    return x.sigmoid() * (1.0 + x * (1.0 - x.sigmoid()))


def _share(x: torch.Tensor) -> torch.Tensor:
    return (2.0 * _ROOT * (x + 0.044715 * x**3)).sigmoid()


def of_gate(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradients of gate and up."""
    size = definition.axes["intermediate_size"]

    def instead(name: str, formula: Gated) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            gate, up = inputs["input"].float().chunk(2, dim=1)
            both = formula(inputs["grad_output"].float(), gate, up)
            return (torch.cat(both, dim=1).to(outputs[0].dtype),)

        return on_outputs(definition, name, spoil)

    changes: dict[str, Change] = {
        "gate and up swapped": lambda i: {"input": i["input"].roll(size, 1)},
        "gradient of the row before": lambda i: {
            "grad_output": i["grad_output"].roll(1, 0)
        },
        "gradient of the next column": lambda i: {
            "grad_output": i["grad_output"].roll(-1, 1)
        },
    }
    return (
        *(instead(name, formula) for name, formula in _GATED.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


def of_gelu(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradient of GELU."""

    def instead(name: str) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            grad, x = inputs["grad_output"].float(), inputs["input"].float()
            return (_GELU[name](grad, x).to(outputs[0].dtype),)

        return on_outputs(definition, name, spoil)

    def before(inputs: Inputs) -> dict[str, torch.Tensor]:
        return {"grad_output": inputs["grad_output"].roll(1, 0)}

    return (
        *map(instead, _GELU),
        on_inputs(definition, "gradient of the row before", before),
    )


MUTANTS = (
    MutantGroup(of_gate, "grad_output input grad_input gate_up_size"),
    MutantGroup(of_gelu, "grad_output input grad_input gelu"),
)
