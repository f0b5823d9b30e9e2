"""The defects of exchanges: other ranks, rows that are missing, sums that are none."""

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
    shifted,
)
from kernel_judge.definition import Definition


def of_dispatch(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of which rank gets which row, and what is said of it."""
    experts, ranks = definition.constants["num_experts"], definition.axes["world_size"]
    share = experts // ranks

    def ids(change: Callable[[torch.Tensor], torch.Tensor]) -> Change:
        return lambda i: {"topk_ids": change(i["topk_ids"]).to(torch.int32)}

    changes: dict[str, Change] = {
        "experts dealt out in turn": ids(
            lambda t: torch.where(t < 0, t, t % ranks * share + t // ranks % share)
        ),
        "rank of the next expert": ids(lambda t: torch.where(t < 0, t, t + 1)),
        "last slot left out": ids(
            lambda t: torch.cat((t[..., :-1], torch.full_like(t[..., -1:], -1)), -1)
        ),
        "first slot alone": ids(
            lambda t: torch.cat((t[..., :1], torch.full_like(t[..., 1:], -1)), -1)
        ),
        "no expert taken as the last": ids(
            lambda t: torch.where(t < 0, experts - 1, t)
        ),
        "an expert beyond the last taken as that": ids(
            lambda t: t.clamp(max=experts - 1)
        ),
        "rows of the next token": lambda i: {
            "hidden_states": shifted(i["hidden_states"], 1)
        },
        "rows of the next rank": lambda i: {
            "hidden_states": shifted(i["hidden_states"], 0)
        },
    }

    def in_rank(outputs: Outputs, inputs: Inputs) -> Outputs:
        tokens = inputs["hidden_states"].shape[1]
        numbers = torch.where(outputs[1] < 0, -1, outputs[1] % tokens)
        return outputs[0], numbers.to(outputs[1].dtype), outputs[2]

    def by_token(outputs: Outputs, inputs: Inputs) -> Outputs:
        """Put the tokens of all ranks in turn, not one rank behind the other."""
        tokens = inputs["hidden_states"].shape[1]
        received, sources, counts = (out.clone() for out in outputs)
        for rank, count in enumerate(counts.tolist()):
            numbers = sources[rank, :count].long()
            order = (numbers % tokens * ranks + numbers // tokens).argsort()
            sources[rank, :count] = sources[rank, :count][order]
            received[rank, :count] = received[rank, :count][order]
        return received, sources, counts

    def by_slot(outputs: Outputs, inputs: Inputs) -> Outputs:
        wanted = inputs["topk_ids"].flatten()
        wanted = wanted[(wanted >= 0) & (wanted < experts)] // share
        counts = torch.bincount(wanted.long(), minlength=ranks)
        return outputs[0], outputs[1], counts.to(outputs[2].dtype)

    def stale(outputs: Outputs, inputs: Inputs) -> Outputs:
        received = outputs[0].clone()
        received[outputs[1] < 0] = 1.0
        return received, outputs[1], outputs[2]

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "numbers within a rank", in_rank),
        on_outputs(definition, "tokens of ranks in turn", by_token),
        on_outputs(definition, "counts of slots", by_slot),
        on_outputs(definition, "rows behind the last not cleared", stale),
    )


def of_combine(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the defects of sums of rows that come back."""
    ranks = definition.axes["world_size"]

    def instead(
        name: str, total: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    ) -> DomainMutant:
        """Return the mutant of another sum of rows [rank, places] by their numbers."""

        def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
            rows, sources = inputs["expert_rows"].double(), inputs["sources"].long()
            parts = torch.zeros_like(rows)
            for part, own_rows, numbers in zip(parts, rows, sources, strict=True):
                is_token = (numbers >= 0) & (numbers < len(part))
                part.index_add_(0, numbers[is_token], own_rows[is_token])
            out = outputs[0]
            return (total(parts, sources).to(out.dtype).reshape(out.shape),)

        return on_outputs(definition, name, spoil)

    def rounded(parts: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(parts[0], dtype=torch.bfloat16)
        for part in parts:
            total = total + part.bfloat16()
        return total

    changes: dict[str, Change] = {
        "first rank left out": lambda i: {
            "sources": torch.cat(
                (torch.full_like(i["sources"][:1], -1), i["sources"][1:])
            )
        },
        "last rank left out": lambda i: {
            "sources": torch.cat(
                (i["sources"][:-1], torch.full_like(i["sources"][-1:], -1))
            )
        },
        "numbers of the next rank": lambda i: {"sources": i["sources"].roll(1, 0)},
        "no number taken as the first": lambda i: {
            "sources": i["sources"].clamp(min=0)
        },
        "no number taken as the last": lambda i: {
            "sources": (i["sources"] % i["sources"].shape[1]).int()
        },
        "rows of the next place": lambda i: {
            "expert_rows": shifted(i["expert_rows"], 1)
        },
    }
    several = (instead("sum in bfloat16", rounded),) if ranks > 2 else ()
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *several,
        instead("mean over ranks", lambda parts, _: parts.mean(0)),
        instead("last rank's row for the sum", _last),
        instead("largest of the rows", lambda parts, _: parts.amax(0)),
    )


def _last(parts: torch.Tensor, sources: torch.Tensor) -> torch.Tensor:
    """Return of each token what the last rank that has it computed."""
    total = torch.zeros_like(parts[0])
    for part, numbers in zip(parts, sources, strict=True):
        chosen = numbers[(numbers >= 0) & (numbers < len(total))]
        total[chosen] = part[chosen]
    return total


MUTANTS = (
    MutantGroup(of_dispatch, "hidden_states topk_ids world_size num_experts"),
    MutantGroup(of_combine, "expert_rows sources world_size"),
)
