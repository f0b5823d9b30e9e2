"""chunked_attention: causal grouped-query attention within chunks of the positions.

`qo_indptr` delimits each sequence's queries, `kv_indptr` its keys and values. The last
query stands at the last key. The query at position p sees the keys of its chunk up to
p; `c8192` in the name is the length of a chunk. LSE is base 2.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch

from generator.ops.attention.cases import (
    ragged_case,
    ragged_inputs,
    with_far_factors,
)
from generator.ops.attention.flashinfer import prefill_backends, ragged_prefill
from generator.ops.attention.oracle import rows_with_a_key
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.op_types.chunked_attention.chunks import chunk_of, chunked_attention
from generator.ops.op_types.chunked_attention.relations import chunked_relations
from kernel_judge.definition import LIMITS, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = attention_tolerances(products=128, total=800)


def cases(definition: Definition) -> list[Case]:
    """Return short sequences, in one chunk, and some that reach into the next."""
    chunk = chunk_of(definition)
    shapes = {
        "single-token": ("small", ((1, 1),)),
        "whole-prompt": ("small", tuple((n, n) for n in (1, 5, 31, 32, 33, 64, 65))),
        "later-queries": ("small", ((16, 80), (1, 129), (33, 64), (64, 65))),
        "more-queries-than-keys": ("small", ((7, 3), (4, 0), (5, 5), (70, 1))),
        "empty-sequence": ("small", ((0, 0), (3, 17), (0, 9), (2, 2))),
        "extreme-logits": ("small", ((9, 70), (40, 40))),
        "other-scale": ("small", ((3, 33), (20, 20), (1, 64))),
        "around-chunk": ("small", ((1, chunk), (3, chunk + 2))),
        "into-next-chunk": ("medium", ((40, chunk + 20), (5, 9))),
        "third-chunk": ("medium", ((2, 2 * chunk + 1),)),
        # queries before the first key see none, which is cheap
        "past-limits": (LIMITS, ((8_210, 12), (3, 65_600), *[(1, 1)] * 62)),
        "long": ("large", ((200, 2 * chunk + 100), (64, 3000), (1, 3 * chunk))),
    }
    usual = [
        ragged_case(name, size, [q for q, _ in pairs], [kv for _, kv in pairs])
        for name, (size, pairs) in shapes.items()
    ]
    return with_far_factors(definition, usual)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    dim = definition.axes["head_dim"]
    return ragged_inputs(definition, case, stream, dim, dim)


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [total_q, num_qo_heads], in float64."""
    return chunked_attention(inputs, chunk_of(definition))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return FlashInfer's causal ragged prefill, each chunk a sequence of its own."""
    chunk, dim = chunk_of(definition), definition.axes["head_dim"]
    qo, kv = inputs["qo_indptr"].tolist(), inputs["kv_indptr"].tolist()
    qo_cuts, kv_cuts = [0], [0]
    for (q_start, q_end), (start, end) in zip(pairwise(qo), pairwise(kv), strict=True):
        # queries and keys end together; a chunk without queries is a sequence too
        for cut in range(start + chunk, end, chunk):
            qo_cuts.append(max(q_end - (end - cut), q_start))
            kv_cuts.append(cut)
        qo_cuts.append(q_end)
        kv_cuts.append(end)
    device = inputs["q"].device
    cut_inputs = {
        **inputs,
        "qo_indptr": torch.tensor(qo_cuts, dtype=torch.int32, device=device),
        "kv_indptr": torch.tensor(kv_cuts, dtype=torch.int32, device=device),
    }
    return ragged_prefill(definition, cut_inputs, backend, dim, dim)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=chunked_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(prefill_backends, flashinfer_ground_truth)},
)
