"""The defects of embeddings: whose token it is, which row, what factor."""

from __future__ import annotations

import math

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
    """Return the defects of a lookup in one shard of a vocabulary."""
    rows = definition.axes["vocab_size"]

    def clamped(inputs: Inputs) -> dict[str, torch.Tensor]:
        first = inputs["vocab_start"]
        return {"input_ids": inputs["input_ids"].clamp(first, first + rows - 1)}

    def wrapped(inputs: Inputs) -> dict[str, torch.Tensor]:
        first = inputs["vocab_start"]
        return {"input_ids": first + (inputs["input_ids"] - first) % rows}

    def first_row(outputs: Outputs, inputs: Inputs) -> Outputs:
        local = inputs["input_ids"] - inputs["vocab_start"]
        foreign = (local < 0) | (local >= rows)
        return (torch.where(foreign[:, None], inputs["weight"][0], outputs[0]),)

    def last_foreign(outputs: Outputs, inputs: Inputs) -> Outputs:
        last = inputs["input_ids"] == inputs["vocab_start"] + rows - 1
        return (outputs[0].masked_fill(last[:, None], 0.0),)

    def first_foreign(outputs: Outputs, inputs: Inputs) -> Outputs:
        first = inputs["input_ids"] == inputs["vocab_start"]
        return (outputs[0].masked_fill(first[:, None], 0.0),)

    changes: dict[str, Change] = {
        "start of the shard ignored": lambda i: {"vocab_start": 0},
        "start of the shard one too large": lambda i: {
            "vocab_start": i["vocab_start"] + 1
        },
        "tokens of other shards clamped": clamped,
        "tokens of other shards wrapped around": wrapped,
        "row of the token before": lambda i: {"input_ids": i["input_ids"] - 1},
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "first row for tokens of other shards", first_row),
        on_outputs(definition, "last token taken as foreign", last_foreign),
        on_outputs(definition, "first token taken as foreign", first_foreign),
    )


def of_whole(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a lookup in a whole vocabulary; a shard has its own."""
    if "vocab_start" in definition.interface.inputs:
        return ()
    rows = definition.axes["vocab_size"]

    def moved(by: int) -> Change:
        return lambda i: {"input_ids": (i["input_ids"] + by) % rows}

    def last_masked(outputs: Outputs, inputs: Inputs) -> Outputs:
        last = inputs["input_ids"] == rows - 1
        return (outputs[0].masked_fill(last[:, None], 0.0),)

    def first_masked(outputs: Outputs, inputs: Inputs) -> Outputs:
        # the padding token of torch.nn.Embedding
        return (outputs[0].masked_fill((inputs["input_ids"] == 0)[:, None], 0.0),)

    changes: dict[str, Change] = {
        "row of the token before": moved(-1),
        "row of the token behind": moved(1),
        "token of the row before": lambda i: {"input_ids": i["input_ids"].roll(1)},
        "columns in reverse": lambda i: {"weight": i["weight"].flip(1)},
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "last token taken as foreign", last_masked),
        on_outputs(definition, "token 0 taken as padding", first_masked),
    )


def of_factor(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of Gemma's factor."""
    size = definition.axes["hidden_size"]
    root = math.sqrt(size)
    rounded = torch.tensor(root).bfloat16().item()
    factors = {
        "factor missing": 1.0,
        "factor not rounded": root,
        "root of the factor missing": float(size),
        "divided by the factor": 1.0 / rounded,
        "factor applied twice": rounded * rounded,
    }
    return tuple(_multiplied(definition, *named) for named in factors.items())


def _multiplied(definition: Definition, name: str, factor: float) -> DomainMutant:
    """Return the mutant that multiplies rows by another factor."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        weight = inputs["weight"]
        local = inputs["input_ids"] - inputs.get("vocab_start", 0)
        here = (local >= 0) & (local < len(weight))
        rows = weight[torch.where(here, local, 0)].float() * factor
        return (rows.masked_fill(~here[:, None], 0.0).to(weight.dtype),)

    return on_outputs(definition, name, spoil)


MUTANTS = (
    MutantGroup(mutants, "input_ids weight vocab_start vocab_size"),
    MutantGroup(of_whole, "input_ids weight vocab_size"),
    MutantGroup(of_factor, "input_ids weight hidden_size scaled"),
)
