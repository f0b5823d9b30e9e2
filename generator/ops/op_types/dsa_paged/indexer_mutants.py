"""Domain mutants of the indexer: scores, layout of the cache, meaning of the ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from generator.ops.mutants import (
    Change,
    DomainMutant,
    Inputs,
    Outputs,
    on_inputs,
    on_outputs,
    shifted,
)
from generator.ops.op_types.dsa_paged.indexer import exact_scores, unpacked, visible_ids
from kernel_judge.definition import Definition

_PADDING = -1
_SCALE_BYTES = 4
# keys [n, dim], scales [n], queries [heads, dim], weights [heads] → scores [n]
Score = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
_SCORES: dict[str, Score] = {
    "relu missing": lambda k, s, q, w: (k @ q.T) @ w * s,
    "absolute value for relu": lambda k, s, q, w: (k @ q.T).abs() @ w * s,
    "relu behind the sum": lambda k, s, q, w: ((k @ q.T) @ w).clamp_min(0) * s,
    "scores negated": lambda k, s, q, w: -((k @ q.T).clamp_min(0) @ w * s),
    "scale of the key divides": lambda k, s, q, w: (k @ q.T).clamp_min(0) @ w / s,
    "one head alone": lambda k, s, q, w: (k @ q[:1].T).clamp_min(0) @ w[:1] * s,
    "scores ignored": lambda k, s, q, w: -torch.arange(len(k)).double(),
}


def mutants(definition: Definition) -> tuple[DomainMutant, ...]:
    """Return the mutants of an indexer."""
    page_size = definition.axes["page_size"]
    changes: dict[str, Change] = {
        "weights missing": lambda i: {"weights": torch.ones_like(i["weights"])},
        "weights of the next row": lambda i: {"weights": shifted(i["weights"], 0)},
        "weights of the next head": lambda i: {"weights": shifted(i["weights"], 1)},
        "queries of the next row": lambda i: {
            "q_index_fp8": shifted(i["q_index_fp8"], 0)
        },
        "scales missing": lambda i: _repacked(i, lambda k, s: (k, torch.ones_like(s))),
        "scales of the next token": lambda i: _repacked(
            i, lambda k, s: (k, s.roll(1, 1))
        ),
        "layout token by token": _by_token,
        "pages sorted": lambda i: {"block_table": i["block_table"].sort().values},
        "page order ignored": lambda i: {
            "block_table": torch.arange(i["block_table"].shape[1], dtype=torch.int32)
            .expand_as(i["block_table"])
            .clamp_max(len(i["k_index_cache_fp8"]) - 1)
        },
        "pages of the next row": lambda i: {
            "block_table": shifted(i["block_table"], 0)
        },
        "last token ignored": lambda i: {"seq_lens": (i["seq_lens"] - 1).clamp_min(0)},
        "last page full": lambda i: {
            "seq_lens": (i["seq_lens"] + page_size - 1) // page_size * page_size
        },
    }
    spoilt: dict[str, Callable[[Outputs, Inputs], Outputs]] = {
        "indices local instead of global": lambda o, i: (_local(o[0], i),),
        "padded with 0": lambda o, i: (o[0].clamp_min(0),),
        "padding in front": lambda o, i: (o[0].flip(1),),
        "a token twice": lambda o, i: (_twice(o[0]),),
        "one token too few": lambda o, i: (o[0].where(~_last(o[0]), _PADDING),),
        "best token left out": lambda o, i: (_without_best(o[0], i),),
        "id of another row": lambda o, i: (_foreign(o[0]),),
    }
    if page_size > 1:
        spoilt["offset in the page ignored"] = lambda o, i: (
            o[0].where(o[0] == _PADDING, o[0] // page_size * page_size),
        )
    return (
        *(on_inputs(definition, name, change) for name, change in changes.items()),
        *(on_outputs(definition, name, change) for name, change in spoilt.items()),
        *(
            on_outputs(definition, name, _chosen_by(score))
            for name, score in _SCORES.items()
        ),
    )


def _chosen_by(score: Score) -> Callable[[Outputs, Inputs], Outputs]:
    """Return a change of the outputs to the top k of other scores."""

    def spoil(outputs: Outputs, inputs: Inputs) -> Outputs:
        (ids,) = outputs
        picked = torch.full_like(ids, _PADDING)
        for row in range(len(ids)):
            visible = visible_ids(inputs, row)
            q = inputs["q_index_fp8"][row].double()
            scores = score(
                *unpacked(inputs, visible), q, inputs["weights"][row].double()
            )
            best = scores.argsort(descending=True, stable=True)[: ids.shape[1]]
            picked[row, : len(best)] = visible[best].to(ids.dtype)
        return (picked,)

    return spoil


def _repacked(
    inputs: Inputs,
    change: Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]],
) -> dict[str, Any]:
    """Change the keys, int8 [pages, bytes], or scales, float32 [pages, page_size]."""
    cache = inputs["k_index_cache_fp8"]
    pages = cache.reshape(len(cache), -1)
    keys = cache.shape[1] * (cache.shape[3] - _SCALE_BYTES)
    scales = pages[:, keys:].contiguous().view(torch.float32)
    parts = change(pages[:, :keys], scales)
    packed = torch.cat([part.contiguous().view(torch.int8) for part in parts], dim=1)
    return {"k_index_cache_fp8": packed.view(cache.shape)}


def _by_token(inputs: Inputs) -> dict[str, Any]:
    """Return the cache as read token by token, each with its scale behind its key."""
    cache = inputs["k_index_cache_fp8"]
    tokens = cache.flatten(1, 2)
    keys, scales = tokens[..., :-_SCALE_BYTES], tokens[..., -_SCALE_BYTES:]
    packed = torch.cat([keys.flatten(1), scales.flatten(1)], dim=1)
    return {"k_index_cache_fp8": packed.contiguous().view(cache.shape)}


def _local(ids: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Replace ids in the pool by positions in the sequence."""
    moved = ids.clone()
    for row, chosen in enumerate(ids):
        visible = visible_ids(inputs, row)
        ordered, places = visible.sort()
        kept = chosen != _PADDING
        where = torch.searchsorted(ordered, chosen[kept].long())
        moved[row, kept] = places[where.clamp_max(len(places) - 1)].to(ids.dtype)
    return moved


def _last(ids: torch.Tensor) -> torch.Tensor:
    """Return the last id of each row as a mask: bool, shaped as ids."""
    count = (ids != _PADDING).sum(dim=1, keepdim=True)
    return torch.arange(ids.shape[1]) == count - 1


def _twice(ids: torch.Tensor) -> torch.Tensor:
    repeated = ids.clone()
    if ids.shape[1] > 1:
        repeated[:, 1] = ids[:, 1].where(ids[:, 1] == _PADDING, ids[:, 0])
    return repeated


def _foreign(ids: torch.Tensor) -> torch.Tensor:
    other = ids.clone()
    other[0, 0] = ids[-1, 0]
    return other


def _without_best(ids: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    """Replace each row's best token by its worst, where that is not selected."""
    swapped = ids.clone()
    for row in range(len(ids)):
        scores = exact_scores(inputs, row)
        if len(scores) > ids.shape[1]:
            order = visible_ids(inputs, row)[scores.argsort(descending=True)]
            swapped[row, swapped[row] == order[0]] = order[-1].to(ids.dtype)
    return swapped
