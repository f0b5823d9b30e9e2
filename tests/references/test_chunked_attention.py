"""Reference tests of op_type chunked_attention.

Rendered: don't edit. `gen-tests --op-type chunked_attention` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
A recorded output has the tolerance of its kernel.

Begin at `# ---- the tests`: there stands each reference, with its tolerances above it and
the definitions that have it below. Before that stand the op (cases, inputs, oracle, how
kernels are called) and the interfaces. docs/tests.md of gen-tests lists the tests of a
class; kernel_judge/comparison/tolerance.py has the default tolerance of each dtype.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import torch

from generator.ops.attention.cases import ragged_case, ragged_inputs, with_far_factors
from generator.ops.attention.flashinfer import prefill_backends, ragged_prefill
from generator.ops.attention.oracle import rows_with_a_key
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.op_types.chunked_attention.chunks import chunk_of, chunked_attention
from generator.ops.op_types.chunked_attention.relations import chunked_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import LIMITS, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.op_types.chunked_attention.chunks
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.op_types.chunked_attention.relations

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


# ---- the interfaces

INTERFACE_CHUNKED_ATTENTION_PREFILL = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k": "bfloat16[total_kv, num_kv_heads, head_dim]",
        "v": "bfloat16[total_kv, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=("total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"),
)

# ---- the tests


class ChunkedAttentionTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of chunked_attention share."""

    op_type = "chunked_attention"
    sizes = ("small", "medium")
    op = OP


# fmt: off
# ruff: noqa: RUF012 - axes are read, never changed
# Each reference with its tags, then a class for each definition that has it.
# How to read its tolerances:
# - |actual - expected| <= atol + rtol * |expected| for each element, and the squared errors
#   are at most NMSE of the squared expected values. An atol* grows with the case's values.
# - The first row counts that fits the output, the source (the oracle, or a kernel as
#   provider/backend) and, after `in`, the case. Some definitions do not call all kernels.
# - Errors of one sign, a factor or an offset, are bounded beside that: "Errors with a sign"
#   in docs/evaluate.md of gen-tests.
# Reasons in short; `TOLERANCES`, or the module of bounds named above, derives them in full:
# (1) one rounding to bfloat16.
# (2) the kernel multiplies weights in bfloat16.
# (3) the plain kernel's output, of weights in bfloat16, is rounded, multiplied by the
# share that the sinks leave and rounded again, and run() rounds once.
# (4) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (5) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (6) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (7) a factor or an offset of 7.6e-06 is allowed.
# (8) the 128 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 800, and tensor
# cores add them in float32 by truncation.


# Grouped-query attention within chunks, prefill over contiguous keys and values:
# num_qo_heads query heads share num_kv_heads KV heads. Positions are cut into chunks of
# 8192. Query i of q_len stands at position p = kv_len - q_len + i and sees the keys of
# p's chunk up to p, 8192 * (p // 8192) ... p. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-4-scout, model:llama-4-maverick,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (4)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (5)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (5)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (6) (7)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (8)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
def reference_chunked_attention_prefill():
    import math

    import torch

    ATTENTION_CHUNK_SIZE = 8192


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[1]
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            kv_len = kv_end - kv_start
            keys = k[kv_start:kv_end].float()  # [kv_len, num_kv_heads, head_dim]
            values = v[kv_start:kv_end].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            # A query sees no later key, and none of another chunk: [q_len, kv_len].
            hidden = key_positions[None, :] > query_positions[:, None]
            query_chunks = query_positions // ATTENTION_CHUNK_SIZE
            key_chunks = key_positions // ATTENTION_CHUNK_SIZE
            hidden |= key_chunks[None, :] != query_chunks[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


class ChunkedAttentionPrefillBase(ChunkedAttentionTests):
    reference = staticmethod(reference_chunked_attention_prefill)
    interface = INTERFACE_CHUNKED_ATTENTION_PREFILL
    axes = {"head_dim": 128}
    constants = ("attention_chunk_size",)
    ATTENTION_CHUNK_SIZE = 8192  # "c8192" in the name

class TestChunkedAttentionPrefillC8192H40Kv8D128(ChunkedAttentionPrefillBase):
    name = "chunked_attention_prefill_c8192_h40_kv8_d128"  # tp:1
    axes = {"num_qo_heads": 40, "num_kv_heads": 8}
    sha256 = "f5cada031fba414e4bfff7e949c04d103ff4fc8b179eee9705e227e433304e44"

class TestChunkedAttentionPrefillC8192H5Kv1D128(ChunkedAttentionPrefillBase):
    name = "chunked_attention_prefill_c8192_h5_kv1_d128"  # tp:8
    axes = {"num_qo_heads": 5, "num_kv_heads": 1}
    sha256 = "5cc996e0aa217289b90de5fc42e74572fa6699739b468b638b42b6e888f521bd"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
