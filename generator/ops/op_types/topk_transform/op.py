"""topk_transform: the k highest scores of each row, as places in a cache.

A row's scores are those of its first `lengths` columns. The place of a column is
offset + column in a ragged cache, and page · page_size + offset in the page in a paged
one. Order is free, and of scores that tie with the k-th any may be chosen; a row of
fewer than k has -1 behind its places.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.op_types.topk_transform.relations import topk_relations
from generator.ops.op_types.topk_transform.scores import (
    score_case,
    score_inputs,
    score_rows,
)
from generator.ops.topk_policy import PADDING, TopKSet
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation
from kernel_judge.subject import Kernel, Op

POLICIES = {"indices": TopKSet(score_rows)}
# POLICIES compares sets
TOLERANCES = ()


# places are int32: beyond 16 bits, 24 bits and the halves of both
_FAR = 2**30


def cases(definition: Definition) -> list[Case]:
    """Return rows around k and around a page, ties, near ties, and shared sequences."""
    k, page = definition.axes["k"], definition.constants.get("page_size", 1)
    ragged = tuple(Stream("top-k lengths").integers(1, 5 * k, 12))
    long = tuple(Stream("long top-k lengths").integers(1, 16 * k, 24))
    past = (33_000, *[k + 5] * 130)
    near = (k + 1, k + 3 * page + 7, 2 * k)
    return [
        score_case(definition, "one-token", "small", (1,)),
        score_case(definition, "short", "small", (3, 0, page + 1, k // 2 + 1)),
        score_case(definition, "around-k", "small", (k - 1, k, k + 1, k + page)),
        score_case(definition, "ties", "small", (k + k // 4, 3 * k), "tied"),
        score_case(definition, "near-ties", "small", near, "near"),
        score_case(definition, "shared", "small", (k + 5, k + 6, 2 * k), shared=2),
        score_case(definition, "ragged", "medium", ragged, shared=3),
        score_case(definition, "past-limits", LIMITS, past, base=_FAR),
        score_case(definition, "long", "large", long),
    ]


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `score_inputs` for their shapes."""
    return score_inputs(definition, case, stream)


def oracle(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return places by sorting each row in float64: int64 [num_rows, k]."""
    k = definition.axes["k"]
    chosen = torch.full((len(inputs["lengths"]), k), PADDING)
    for row, one in enumerate(score_rows(definition, inputs, ())):
        best = one.scores.sort(descending=True, stable=True).indices[:k]
        chosen[row, : len(best)] = one.ids[best]
    return chosen


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between rows in another order, renamed pages, shifted rows."""
    return topk_relations(definition, POLICIES["indices"])


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the radix kernel."""
    return (Backend(""),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Call the transform of flashinfer.topk that the definition is named after."""
    from flashinfer import topk

    k = definition.axes["k"]
    rows: torch.Tensor
    scores, lengths = inputs["input"], inputs["lengths"]
    if "offsets" in inputs:
        rows = topk.top_k_ragged_transform(scores, inputs["offsets"], lengths, k)
        return rows
    rows = topk.top_k_page_table_transform(
        scores,
        inputs["src_page_table"],
        lengths,
        k,
        row_to_batch=inputs["row_to_batch"],
        page_size=definition.constants["page_size"],
    )
    return rows


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's kernel, which it compiles for two values of k."""
    compiled = definition.axes["k"] in (512, 2048)
    rewrites = "outputs rewritten: the adapter makes places of the columns"
    return (Backend("jit", min_sm=80, rewrites=rewrites),) if compiled else ()


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> torch.Tensor:
    """Return what SGLang's kernel selects, as places; it returns columns."""
    from sglang.kernels.ops.attention import fast_topk

    columns = fast_topk.fast_topk(
        inputs["input"], inputs["lengths"], definition.axes["k"]
    ).long()
    if "offsets" in inputs:
        places = columns + inputs["offsets"][:, None]
    else:
        size = definition.constants["page_size"]
        tables = inputs["src_page_table"][inputs["row_to_batch"].long()].long()
        pages = tables.gather(1, columns.clamp_min(0) // size)
        places = pages * size + columns % size
    places = places.masked_fill(columns < 0, PADDING)
    # its padding need not be last
    order = (columns < 0).int().argsort(dim=1, stable=True)
    rows: torch.Tensor = places.gather(1, order).int()
    return rows


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=relations,
    policies=POLICIES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
