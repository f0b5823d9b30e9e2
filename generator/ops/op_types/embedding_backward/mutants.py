"""The defects of a table's gradient: repeated tokens, padding, sums in bfloat16."""

from __future__ import annotations

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


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a sum over the places of a token."""
    size = definition.axes["vocab_size"]

    def last_place(outputs: Outputs, inputs: Inputs) -> Outputs:
        total = torch.zeros_like(outputs[0])
        for row, token in zip(*inputs.values(), strict=True):
            total[token] = row
        return (total,)

    def first_place(outputs: Outputs, inputs: Inputs) -> Outputs:
        total = torch.zeros_like(outputs[0])
        backwards = (value.flip(0) for value in inputs.values())
        for row, token in zip(*backwards, strict=True):
            total[token] = row
        return (total,)

    def in_bfloat16(outputs: Outputs, inputs: Inputs) -> Outputs:
        total = torch.zeros_like(outputs[0])
        for row, token in zip(*inputs.values(), strict=True):
            total[token] += row
        return (total,)

    def by_frequency(outputs: Outputs, inputs: Inputs) -> Outputs:
        counts = torch.bincount(inputs["input_ids"], minlength=size).clamp_min(1)
        return ((outputs[0].float() / counts[:, None]).to(outputs[0].dtype),)

    def without(token: int) -> Change:
        def change(inputs: Inputs) -> dict[str, torch.Tensor]:
            these = (inputs["input_ids"] == token)[:, None]
            return {"grad_output": inputs["grad_output"].masked_fill(these, 0.0)}

        return change

    changes: dict[str, Change] = {
        "token 0 taken as padding": without(0),
        "last token taken as padding": without(size - 1),
        "row of the token before": lambda i: {"input_ids": (i["input_ids"] - 1) % size},
        "gradient of the place before": lambda i: {
            "grad_output": i["grad_output"].roll(1, 0)
        },
    }
    return (
        on_outputs(definition, "last place of a token alone", last_place),
        on_outputs(definition, "first place of a token alone", first_place),
        on_outputs(definition, "summed in bfloat16", in_bfloat16),
        on_outputs(definition, "divided by a token's frequency", by_frequency),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


MUTANTS = (MutantGroup(mutants, "grad_output input_ids grad_weight vocab_size"),)
