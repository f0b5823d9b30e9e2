"""The defects of collectives: ranks left out, another order, rounding in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

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

_RING = (
    "NCCL's ring adds in the dtype of the data (reduce_kernel.h, FuncSum of bfloat16), a "
    "rank after the other"
)


def of_sum(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of a sum over ranks, whole or in parts."""
    (output,) = definition.interface.output_specs
    shape = definition.interface.output_specs[output].shape or ()
    ranks = definition.axes["world_size"]

    def instead(
        name: str, total: Callable[[torch.Tensor], torch.Tensor]
    ) -> DomainMutant:
        """Return the mutant with another total, float64 [tokens, columns]."""

        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            rows = total(inputs["partial_sums"]).to(outputs[0].dtype)
            return (rows.reshape(outputs[0].shape),)

        return on_outputs(definition, name, spoil)

    def of_ranks(which: slice) -> Change:
        def change(inputs: Inputs) -> Mapping[str, Any]:
            parts = torch.zeros_like(inputs["partial_sums"])
            parts[which] = inputs["partial_sums"][which]
            return {"partial_sums": parts}

        return change

    rounded = replace(instead("sum in bfloat16", _rounded_sum), as_kernel=_RING)
    return (
        # between two ranks there is one addition, rounded once
        *([rounded] if ranks > 2 else []),
        instead("mean over ranks", lambda p: p.double().mean(0)),
        instead("largest of the ranks", lambda p: p.double().amax(0)),
        instead(
            "sum in float16",
            lambda p: p.double().half().sum(0).clamp(-6e4, 6e4).double(),
        ),
        on_inputs(definition, "first rank left out", of_ranks(slice(1, None))),
        on_inputs(definition, "last rank left out", of_ranks(slice(0, ranks - 1))),
        on_inputs(definition, "first rank alone", of_ranks(slice(0, 1))),
        on_inputs(
            definition,
            "first rank for all",
            lambda i: {"partial_sums": i["partial_sums"][:1].expand(ranks, -1, -1)},
        ),
        on_inputs(
            definition,
            "tokens of the next rank",
            lambda i: {"partial_sums": _turned_by_rank(i["partial_sums"])},
        ),
        *(of_parts(definition) if "tokens_per_rank" in shape else ()),
    )


def of_parts(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of dealing out tokens."""

    def in_turn(outputs: Outputs, inputs: Inputs) -> Outputs:
        ranks, share, columns = outputs[0].shape
        return (outputs[0].reshape(share, ranks, columns).transpose(0, 1).contiguous(),)

    def first_part(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (outputs[0][:1].expand_as(outputs[0]).contiguous(),)

    return (
        on_outputs(definition, "tokens dealt out in turn", in_turn),
        on_outputs(definition, "first part for all ranks", first_part),
        on_outputs(
            definition, "part of the next rank", lambda o, _: (o[0].roll(-1, 0),)
        ),
    )


def of_gather(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of putting columns together."""

    def by_rank(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (inputs["shards"].reshape(outputs[0].shape),)

    def interleaved(outputs: Outputs, inputs: Inputs) -> Outputs:
        return (inputs["shards"].permute(1, 2, 0).reshape(outputs[0].shape),)

    return (
        on_outputs(definition, "ranks one below the other", by_rank),
        on_outputs(definition, "columns of ranks in turn", interleaved),
        on_inputs(
            definition, "ranks in reverse", lambda i: {"shards": i["shards"].flip(0)}
        ),
        on_inputs(
            definition, "ranks turned", lambda i: {"shards": i["shards"].roll(1, 0)}
        ),
        on_inputs(
            definition,
            "first rank for all",
            lambda i: {"shards": i["shards"][:1].expand_as(i["shards"])},
        ),
        on_inputs(
            definition,
            "columns shifted by one in each rank",
            lambda i: {"shards": i["shards"].roll(1, 2)},
        ),
    )


def _rounded_sum(parts: torch.Tensor) -> torch.Tensor:
    """Return the sum over ranks with every addition rounded to bfloat16, float64."""
    total, *others = parts
    for part in others:
        total = (total.float() + part.float()).bfloat16()
    rounded: torch.Tensor = total.double()
    return rounded


def _turned_by_rank(parts: torch.Tensor) -> torch.Tensor:
    """Return the parts with the tokens of rank r moved by r."""
    return torch.stack([part.roll(rank, 0) for rank, part in enumerate(parts)])


MUTANTS = (
    MutantGroup(of_sum, "partial_sums world_size"),
    MutantGroup(of_gather, "shards gathered world_size"),
)
