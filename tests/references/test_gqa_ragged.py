"""Reference tests of op_type gqa_ragged.

Rendered: don't edit. `gen-tests --op-type gqa_ragged` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else generator/testing/tolerance.py by dtype.

SHA-256 of the definitions:
47b5c39b831fd37e8205f9e206c37e67784285a7a8b333a01158afcdef72ba89  gqa_ragged_prefill_causal_h16_kv2_d128
1fac62f239feb1d339aa85db17c8ae8f7a5906b22bcd754bfb6cae3f0145b1fd  gqa_ragged_prefill_causal_h20_kv4_d128
903e0d37f3cba450f8b2019e981282a42df4abc1b22e7355d3e61c8f52e30cfe  gqa_ragged_prefill_causal_h24_kv8_d128
4c0c7a7f58316d93fe24a0aa80db90bf2d2ea65d801775703dae578dc89c6847  gqa_ragged_prefill_causal_h32_kv16_d128
b738ec48e78c1cae146b82db6c37ab2a4d15c1181091f9b9cc8f1bada39a2827  gqa_ragged_prefill_causal_h32_kv4_d128
50aa048f607d4be334ee414942bb90687630e62c974db50e79ea850cd26d1c30  gqa_ragged_prefill_causal_h32_kv8_d128
8277c6b3328173c74280eb535d40149e9673b5830fc0b52c1113faabeba1ccd8  gqa_ragged_prefill_causal_h5_kv1_d128
1baa7d8d50349288eb33efaaa8d8c4d67db4a1a8c4580308a0d415c3b1dbf9b7  gqa_ragged_prefill_causal_h6_kv1_d128
3f805fe7a40fdea87f5e9213c9e671e537c710fdedb27dab8e105eb71d651960  gqa_ragged_prefill_causal_h8_kv1_d256
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.attention.cases import ragged_cases, ragged_inputs
from generator.ops.attention.flashinfer import FA2, FA3, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import attention_tolerances
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.harness import GroundTruthsAgree, MatchesFlashInfer, main
from generator.testing.metamorphic import Metamorphic
from generator.testing.relation import Relation
from generator.testing.replay import MatchesRecorded
from generator.testing.seeded_inputs import Stream

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES = attention_tolerances(products=256, total=800)


def cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    return ragged_cases()


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    axes = definition.axes
    return ragged_inputs(definition, case, stream, axes["head_dim"], axes["head_dim"])


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [total_q, num_qo_heads], in float64."""
    return oracle_ragged(inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs)


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls with other layouts of the sequences."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the prefill kernel."""
    return (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(
        definition, inputs, backend, axes["head_dim"], axes["head_dim"]
    )


# ---- the interfaces

INTERFACE_GQA_RAGGED_PREFILL_CAUSAL = Interface(
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
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "total_kv == kv_indptr[-1].item()",
    ),
)

# ---- the references, as the definitions have them


# fmt: off
# of gqa_ragged_prefill_causal_h16_kv2_d128 and 8 more definitions
def reference_gqa_ragged_prefill_causal():
    import math

    import torch


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
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# fmt: on
# ---- the tests


class GqaRaggedTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesRecorded, Metamorphic
):
    """What the tests of gqa_ragged share."""

    op_type = "gqa_ragged"
    sizes = ("small", "medium")
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Grouped-query attention over contiguous keys and values, causal prefill: 16 query
# heads share 2 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:4
class TestGqaRaggedPrefillCausalH16Kv2D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h16_kv2_d128"
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 20 query
# heads share 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:2
class TestGqaRaggedPrefillCausalH20Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h20_kv4_d128"
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 24 query
# heads share 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH24Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h24_kv8_d128"
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv16D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv16_d128"
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv4_d128"
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv8_d128"
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 5 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-4-scout-17b-16e,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestGqaRaggedPrefillCausalH5Kv1D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h5_kv1_d128"
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 6 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestGqaRaggedPrefillCausalH6Kv1D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h6_kv1_d128"
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128


# Grouped-query attention over contiguous keys and values, causal prefill: 8 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-next-80b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:2
class TestGqaRaggedPrefillCausalH8Kv1D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h8_kv1_d256"
    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 1
    HEAD_DIM = 256


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
