"""The defects of places by expert: padding, blocks, pairs elsewhere, counts."""

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
    with_output,
)
from kernel_judge.definition import Definition


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a routing by blocks."""
    top_k, experts = definition.axes["topk"], definition.constants["num_experts"]

    def padded_with(value: int) -> DomainMutant:
        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            places, pairs = outputs[0], inputs["topk_ids"].numel()
            return with_output(outputs, 0, torch.where(places == pairs, value, places))

        return on_outputs(definition, f"padding of {value}", spoil)

    def of_tokens(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 0, (outputs[0] // top_k).int())

    def unpadded(outputs: Outputs, inputs: Inputs) -> Outputs:
        pairs = torch.full_like(outputs[2], inputs["topk_ids"].numel())
        return with_output(outputs, 2, pairs)

    def of_buckets(outputs: Outputs, inputs: Inputs) -> Outputs:
        return with_output(outputs, 1, outputs[1] + 1)

    def last_pair_missing(outputs: Outputs, inputs: Inputs) -> Outputs:
        places, pairs = outputs[0], inputs["topk_ids"].numel()
        return with_output(outputs, 0, torch.where(places == pairs - 1, pairs, places))

    def rest_of_the_last(outputs: Outputs, inputs: Inputs) -> Outputs:
        last = outputs[1].amax()
        used = (
            torch.arange(len(outputs[1]))
            < outputs[2].cpu() // definition.constants["block_size"]
        )
        wrong = torch.where(used.to(last.device), outputs[1], last)
        return with_output(outputs, 1, wrong)

    changes: dict[str, Change] = {
        "experts elsewhere taken as expert 0": lambda i: {
            "topk_ids": i["topk_ids"].clamp(0, experts - 1)
        },
        "first expert left out": lambda i: {
            "topk_ids": torch.where(i["topk_ids"] == 0, -1, i["topk_ids"])
        },
        "last expert left out": lambda i: {
            "topk_ids": torch.where(i["topk_ids"] == experts - 1, -1, i["topk_ids"])
        },
        "id behind the last taken as the last expert": lambda i: {
            "topk_ids": torch.where(
                i["topk_ids"] == experts, experts - 1, i["topk_ids"]
            )
        },
        "id of -2 taken as expert 0": lambda i: {
            "topk_ids": torch.where(i["topk_ids"] == -2, 0, i["topk_ids"])
        },
        "ids outside wrapped round": lambda i: {
            "topk_ids": torch.where(
                i["topk_ids"] == -1, -1, i["topk_ids"] % experts
            ).int()
        },
        "pairs by rank of the expert": lambda i: {
            "topk_ids": i["topk_ids"].T.reshape(i["topk_ids"].shape)
        },
    }
    return (
        padded_with(0),
        padded_with(-1),
        on_outputs(definition, "tokens for pairs", of_tokens),
        on_outputs(definition, "pairs counted without padding", unpadded),
        on_outputs(definition, "experts numbered from 1", of_buckets),
        on_outputs(definition, "last pair missing", last_pair_missing),
        on_outputs(
            definition, "blocks that are not used of the last", rest_of_the_last
        ),
        *(on_inputs(definition, name, change) for name, change in changes.items()),
    )


MUTANTS = (MutantGroup(mutants, "topk_ids sorted_token_ids num_experts block_size"),)
