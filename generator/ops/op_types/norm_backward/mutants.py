"""The defects of gradients of norms: a term missing, the wrong sum, eps, the weight."""

from __future__ import annotations

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
    with_output,
)
from kernel_judge.definition import Definition

# the gradient times the weight, the normalised rows, and what they were multiplied by,
# float32 [num_tokens, hidden_size] or [num_tokens, 1], to grad_input
Formula = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_RMS: dict[str, Formula] = {
    "root taken as constant": lambda g, n, r: r * g,
    "term along the row added": lambda g, n, r: r * (g + n * _mean(g * n)),
    "sum along the row for its mean": lambda g, n, r: (
        r * (g - n * (g * n).sum(dim=1, keepdim=True))
    ),
    "mean of gradients for the term along": lambda g, n, r: r * (g - _mean(g)),
    "mean taken away as well": lambda g, n, r: r * (g - _mean(g) - n * _mean(g * n)),
    "not multiplied by the root": lambda g, n, r: g - n * _mean(g * n),
    "root squared": lambda g, n, r: r * r * (g - n * _mean(g * n)),
    "rows not normalised in the term": lambda g, n, r: r * (g - n / r * _mean(g * n)),
}
_LAYER: dict[str, Formula] = {
    "variance taken as constant": lambda g, n, r: r * (g - _mean(g)),
    "mean taken as constant": lambda g, n, r: r * (g - n * _mean(g * n)),
    "both taken as constant": lambda g, n, r: r * g,
    "not multiplied by the root": lambda g, n, r: g - _mean(g) - n * _mean(g * n),
    "term along the row added": lambda g, n, r: r * (g - _mean(g) + n * _mean(g * n)),
    "divided by a column less": lambda g, n, r: (
        r * (g - (_mean(g) + n * _mean(g * n)) * g.shape[1] / (g.shape[1] - 1))
    ),
}


def _mean(x: torch.Tensor) -> torch.Tensor:
    return x.mean(dim=1, keepdim=True)


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of the gradients of either norm."""
    has_bias = "grad_bias" in definition.interface.outputs
    eps = definition.constants["eps"]
    formulas = _LAYER if has_bias else _RMS

    def instead(name: str, formula: Formula) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            x = inputs["hidden_states"].float()
            x = x - _mean(x) if has_bias else x
            root = torch.rsqrt(_mean(x * x) + eps)
            grad = inputs["grad_output"].float() * inputs["weight"].float()
            value = formula(grad, x * root, root)
            return with_output(outputs, 0, value.to(outputs[0].dtype))

        return on_outputs(definition, name, spoil)

    changes: dict[str, Change] = {
        "weight missing": lambda i: {"weight": torch.ones_like(i["weight"])},
        "weight with +1": lambda i: {"weight": i["weight"] + 1.0},
        "weight of the next column": lambda i: {"weight": i["weight"].roll(-1)},
        "gradient of the token before": lambda i: {
            "grad_output": i["grad_output"].roll(1, 0)
        },
        "rows and gradients swapped": lambda i: {
            "grad_output": i["hidden_states"],
            "hidden_states": i["grad_output"],
        },
        "rows doubled": lambda i: {"hidden_states": 2.0 * i["hidden_states"]},
    }
    return (
        *(instead(name, formula) for name, formula in formulas.items()),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *_of_parameters(definition),
    )


def _of_parameters(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of what is summed over tokens."""

    def mean(outputs: Outputs, inputs: Inputs) -> Outputs:
        count = max(len(inputs["grad_output"]), 2)
        return (outputs[0], *(value / count for value in outputs[1:]))

    def by_weight(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1] * inputs["weight"])

    def of_rows(outputs: Outputs, inputs: Inputs) -> Outputs:
        products = inputs["grad_output"].float() * inputs["hidden_states"].float()
        return with_output(outputs, 1, products.sum(dim=0).to(outputs[1].dtype))

    def in_bfloat16(outputs: Outputs, inputs: Inputs) -> Outputs:
        total = torch.zeros_like(outputs[-1])
        for row in inputs["grad_output"]:
            total += row
        same = len(outputs) < 3
        return outputs if same else with_output(outputs, 2, total)

    every = {
        "parameters' gradients divided by the tokens": mean,
        "weight's gradient times the weight": by_weight,
        "weight's gradient of rows not normalised": of_rows,
    }
    if "grad_bias" in definition.interface.outputs:
        every["bias's gradient summed in bfloat16"] = in_bfloat16
    return tuple(on_outputs(definition, *item) for item in every.items())


MUTANTS = (MutantGroup(mutants, "grad_output hidden_states weight grad_input eps"),)
