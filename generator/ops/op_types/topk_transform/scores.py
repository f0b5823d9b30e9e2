"""Rows of scores: their lengths, the windows that they are in, and who may be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from generator.ops.topk_policy import Candidates
from kernel_judge.definition import Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream

# behind a row's length stand scores that are higher than all others
_STALE = 1e4
_SPARE_PAGES = 3


def score_case(
    definition: Definition,
    name: str,
    size: str,
    lengths: tuple[int, ...],
    kind: str = "drawn",
    shared: int = 1,
    base: int = 0,
) -> Case:
    """Return a case of rows of these lengths; `shared` rows have one sequence each.

    Every other row's places are those of a cache's tokens from `base` on.
    """
    page = definition.constants.get("page_size", 1)
    # kernels take no fewer columns than k
    longest = max(*lengths, definition.axes["k"]) + 5
    count = -(-len(lengths) // shared)
    pages = -(-longest // page) + 1
    axes = {"num_rows": len(lengths), "max_len": longest}
    if "page_size" in definition.constants:
        axes |= {"batch_size": count, "max_pages_per_seq": pages}
    params: dict[str, Any] = {"lengths": lengths, "kind": kind, "shared": shared}
    # not in the others' params: recordings know a case by these
    params |= {"base": base} if base else {}
    return Case(name, size, axes, params)


def score_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return a case's inputs: scores float32 [num_rows, max_len], and what maps them.

    src_page_table int32 [batch_size, max_pages_per_seq] has distinct pages in random
    order; lengths, row_to_batch and offsets int32 [num_rows]. Of `tied` scores there
    are seven values, of `near` ones all are one bfloat16.
    """
    lengths, shape = case.params["lengths"], tuple(case.axes.values())[:2]
    base = case.params.get("base", 0)
    scores = stream.child("scores").values(shape, 2.0)
    if case.params["kind"] == "tied":
        scores = (scores.abs() * 2.0).floor().clamp(max=6.0)
    if case.params["kind"] == "near":
        order = [stream.child(str(r)).permutation(shape[1]) for r in range(shape[0])]
        scores = 4.0 + torch.stack(order).float() * 2.0**-21
    for row, length in enumerate(lengths):
        scores[row, length:] = _STALE
    inputs = {"input": scores, "lengths": torch.tensor(lengths, dtype=torch.int32)}
    if "page_size" in definition.constants:
        batch, pages = case.axes["batch_size"], case.axes["max_pages_per_seq"]
        table = stream.child("pages").permutation(batch * pages + _SPARE_PAGES)
        table = table[: batch * pages].view(batch, pages)
        table[1::2] += base // definition.constants["page_size"]
        inputs["src_page_table"] = table.int()
        owners = torch.arange(len(lengths)) // case.params["shared"]
        inputs["row_to_batch"] = (batch - 1 - owners).int()
    else:
        # where each row's sequence begins in one array of all
        starts = torch.tensor([0, *lengths]).cumsum(0)[:-1]
        starts[1::2] += base
        inputs["offsets"] = (starts + 11).int()
    return {name: inputs[name] for name in definition.interface.inputs}


def visible(
    definition: Definition, inputs: Mapping[str, Any], row: int
) -> torch.Tensor:
    """Return what a row's columns stand for, in order: int64 [length]."""
    length = int(inputs["lengths"][row])
    if "offsets" in inputs:
        return torch.arange(length) + int(inputs["offsets"][row])
    size = definition.constants["page_size"]
    owner = int(inputs["row_to_batch"][row])
    pages = inputs["src_page_table"][owner].cpu().long().tolist()
    slots = [pages[n // size] * size + n % size for n in range(length)]
    return torch.tensor(slots, dtype=torch.int64)


def score_rows(
    definition: Definition, inputs: Mapping[str, Any], arithmetics: Sequence[str]
) -> list[Candidates]:
    """Return each row's ids and scores. Nobody computes with these: no error."""
    candidates = []
    for row, scores in enumerate(inputs["input"].cpu().double()):
        ids = visible(definition, inputs, row)
        none = torch.zeros(len(ids), dtype=torch.float64)
        errors = dict.fromkeys(arithmetics, none)
        candidates.append(Candidates(ids, scores[: len(ids)], errors))
    return candidates
