"""The defects of top-k transforms: windows, pages, offsets, padding, which are chosen."""

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
from generator.ops.op_types.topk_transform.scores import score_rows
from kernel_judge.definition import Definition

_PADDING = -1
Spoil = Callable[[torch.Tensor], torch.Tensor]


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of what is chosen, and of how it is padded."""
    changes: dict[str, Change] = {
        "length ignored": lambda i: {
            "lengths": torch.full_like(i["lengths"], i["input"].shape[1])
        },
        "length of the next row": lambda i: {"lengths": shifted(i["lengths"], 0)},
        "length one too many": lambda i: {
            "lengths": (i["lengths"] + 1).clamp(max=i["input"].shape[1])
        },
        "last token ignored": lambda i: {"lengths": (i["lengths"] - 1).clamp_min(0)},
        "lowest scores": lambda i: {"input": -i["input"]},
        "largest magnitudes": lambda i: {"input": i["input"].abs()},
        "scores rounded to bfloat16": lambda i: {
            "input": i["input"].bfloat16().float()
        },
        "scores of the next row": lambda i: {"input": shifted(i["input"], 0)},
        "first tokens for the best": lambda i: {
            "input": -torch.arange(i["input"].shape[1]).expand_as(i["input"]).float()
        },
    }
    spoilt: dict[str, Spoil] = {
        "padded with 0": lambda ids: ids.clamp_min(0),
        "padding in front": lambda ids: ids.flip(1),
        "a place twice": lambda ids: torch.cat([ids[:, :1], ids[:, :-1]], dim=1),
        "one too few": _one_too_few,
    }
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(
            on_outputs(definition, name, _spoilt(spoil))
            for name, spoil in spoilt.items()
        ),
        on_outputs(definition, "columns for places", _columns(definition)),
    )


def paged_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the page table."""
    size = definition.constants["page_size"]
    changes: dict[str, Change] = {
        "pages sorted": lambda i: {"src_page_table": i["src_page_table"].sort().values},
        "pages of the next sequence": lambda i: {
            "src_page_table": shifted(i["src_page_table"], 0)
        },
        "row for sequence": lambda i: {
            "row_to_batch": torch.arange(len(i["row_to_batch"]))
            .clamp(max=len(i["src_page_table"]) - 1)
            .int()
        },
        "table one page late": lambda i: {
            "src_page_table": shifted(i["src_page_table"], 1)
        },
    }
    defects = [on_inputs(definition, name, change) for name, change in changes.items()]
    if size > 1:
        spoilt: dict[str, Spoil] = {
            "pages for places": lambda ids: ids // size,
            "offset in the page ignored": lambda ids: ids // size * size,
            "page and offset swapped": lambda ids: ids % size * size + ids // size,
        }
        defects += [
            on_outputs(definition, name, _spoilt(spoil, keep=True))
            for name, spoil in spoilt.items()
        ]
    return tuple(defects)


def ragged_mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of the offsets."""
    changes: dict[str, Change] = {
        "offsets ignored": lambda i: {"offsets": torch.zeros_like(i["offsets"])},
        "offsets negated": lambda i: {"offsets": -i["offsets"]},
        "offsets of the next row": lambda i: {"offsets": shifted(i["offsets"], 0)},
        "offsets from 0": lambda i: {"offsets": i["offsets"] - i["offsets"][:1]},
    }

    def padding_moved(outputs: Outputs, inputs: Inputs) -> Outputs:
        (ids,) = outputs
        moved = inputs["offsets"][:, None] - 1
        return (torch.where(ids == _PADDING, moved, ids).to(ids.dtype),)

    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        on_outputs(definition, "offset added to padding", padding_moved),
    )


def _spoilt(spoil: Spoil, keep: bool = False) -> Callable[[Outputs, Inputs], Outputs]:
    """Return a change of the ids, of all or, with `keep`, of those but padding."""

    def change(outputs: Outputs, inputs: Inputs) -> Outputs:
        (ids,) = outputs
        kept = ids == _PADDING if keep else torch.zeros_like(ids, dtype=torch.bool)
        return (torch.where(kept, ids, spoil(ids)),)

    return change


def _one_too_few(ids: torch.Tensor) -> torch.Tensor:
    last = (ids != _PADDING).sum(dim=1, keepdim=True) - 1
    return ids.scatter(1, last.clamp_min(0), _PADDING)


def _columns(definition: Definition) -> Callable[[Outputs, Inputs], Outputs]:
    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        (ids,) = outputs
        picked = torch.full_like(ids, _PADDING)
        for row, one in enumerate(score_rows(definition, inputs, ())):
            best = one.scores.argsort(descending=True)[: ids.shape[1]]
            picked[row, : len(best)] = best.to(ids.dtype)
        return (picked,)

    return spoil


MUTANTS = (
    MutantGroup(mutants, "input lengths indices"),
    MutantGroup(paged_mutants, "src_page_table row_to_batch page_size"),
    MutantGroup(ragged_mutants, "offsets indices"),
)
