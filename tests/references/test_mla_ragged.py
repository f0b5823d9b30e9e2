"""Reference tests of op_type mla_ragged, rendered by gen-tests 0.1.0.

Don't edit: `gen-tests --op-type mla_ragged` renders this file anew from the
definitions and from gen-tests' own sources (3dd85bc17f31f1e2).

Each class embeds one definition's `run()` and compares what it returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else reference_support/tolerance.py by dtype.

SHA-256 of the definitions:
6964352bcf136c3ae88dd4f582aa49ba3a2bff066fc911e4b2aca6f2d49c626d  mla_ragged_prefill_causal_h16_qk192_vo128
06a4dfc696fe56c02874b43d8d337d1ce7631ff3f33ec023b3ddf6436f1e41ee  mla_ragged_prefill_causal_h8_qk192_vo128
"""

from __future__ import annotations

import sys
from typing import Any

import torch

# isort: split
from reference_support.attention import (
    FA2,
    FA3,
    FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    TO_ORACLE,
    lse_of_tensor_cores,
    oracle_ragged,
    ragged_cases,
    ragged_rows_with_a_key,
    scale_of,
    workspace,
)
from reference_support.definition import Backend, Case, Definition, Interface
from reference_support.harness import GroundTruthsAgree, MatchesFlashInfer, main
from reference_support.metamorphic import Metamorphic
from reference_support.paging import indptr
from reference_support.recorded import MatchesRecorded
from reference_support.related_attention import attention_relations
from reference_support.relation import Relation
from reference_support.stream import Stream

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES = (
    *TO_ORACLE,
    *FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    lse_of_tensor_cores(products=192, total=740),
)


def cases(definition: Definition) -> list[Case]:
    """Return the attention cases of prefill, for keys without pages."""
    return ragged_cases()


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 queries, keys and shorter values of ragged sequences."""
    axes = {**definition.axes, **case.axes}
    shapes = {
        "q": (axes["total_q"], axes["num_qo_heads"], axes["qk_dim"]),
        "k": (axes["total_kv"], axes["num_kv_heads"], axes["qk_dim"]),
        "v": (axes["total_kv"], axes["num_kv_heads"], axes["vo_dim"]),
    }
    stds = {"q": case.params["q_std"], "k": 1.0, "v": 1.0}
    made: dict[str, Any] = {
        name: stream.child(name).values(shape, stds[name], torch.bfloat16)
        for name, shape in shapes.items()
    }
    made["qo_indptr"] = indptr(case.params["q_lens"])
    made["kv_indptr"] = indptr(case.params["kv_lens"])
    made["sm_scale"] = scale_of(case, axes["qk_dim"])
    return made


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and LSE in float64."""
    return oracle_ragged(inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see a key: bool [total_q]."""
    return ragged_rows_with_a_key(inputs)


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls however sequences are laid out."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return both generations of the prefill kernel."""
    return (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's batch wrapper for ragged prefill with its two head lengths."""
    import flashinfer

    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        workspace(q.device), "NHD", backend=backend
    )
    wrapper.plan(
        inputs["qo_indptr"],
        inputs["kv_indptr"],
        definition.axes["num_qo_heads"],
        definition.axes["num_kv_heads"],
        definition.axes["qk_dim"],
        head_dim_vo=definition.axes["vo_dim"],
        causal=True,
        sm_scale=inputs["sm_scale"],
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return wrapper.run(q, k, v, return_lse=True)


# ---- the interfaces

INTERFACE_1 = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, qk_dim]",
        "k": "bfloat16[total_kv, num_kv_heads, qk_dim]",
        "v": "bfloat16[total_kv, num_kv_heads, vo_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, vo_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "total_kv == kv_indptr[-1].item()",
    ),
)

# ---- the references, as the definitions have them


# fmt: off
# of mla_ragged_prefill_causal_h16_qk192_vo128, mla_ragged_prefill_causal_h8_qk192_vo128
def reference_1():
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
        total_q, num_qo_heads, _ = q.shape
        vo_dim = v.shape[2]

        # What a query that sees no key returns.
        output = q.new_zeros(total_q, num_qo_heads, vo_dim)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            kv_len = kv_end - kv_start

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=q.device)
            key_positions = torch.arange(kv_len, device=q.device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # Every query head has a key and value head of its own: heads lead in all three.
            queries = q[qo_start:qo_end].float().transpose(0, 1)
            keys = k[kv_start:kv_end].float().transpose(0, 1)  # [heads, kv_len, qk_dim]
            values = v[kv_start:kv_end].float().transpose(0, 1)  # [heads, kv_len, vo_dim]
            logits = queries @ keys.transpose(1, 2) * sm_scale
            logits.masked_fill_(future, -math.inf)  # [heads, q_len, kv_len]
            attended = logits.softmax(dim=-1) @ values
            output[qo_start:qo_end] = attended.transpose(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1).T / math.log(2)
        return output, lse

    return run


# fmt: on
# ---- the tests


class MlaRaggedTests(
    GroundTruthsAgree, MatchesFlashInfer, MatchesRecorded, Metamorphic
):
    """What the tests of mla_ragged share."""

    op_type = "mla_ragged"
    sizes = ("small", "medium")
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Multi-head latent attention over contiguous keys and values, causal prefill, not
# absorbed: each of the 16 query heads has a key and a value head of its own, and values
# are shorter than keys. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestMlaRaggedPrefillCausalH16Qk192Vo128(MlaRaggedTests):
    """Test the definition mla_ragged_prefill_causal_h16_qk192_vo128."""

    name = "mla_ragged_prefill_causal_h16_qk192_vo128"
    interface = INTERFACE_1
    reference = staticmethod(reference_1)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 16
    QK_DIM = 192
    VO_DIM = 128


# Multi-head latent attention over contiguous keys and values, causal prefill, not
# absorbed: each of the 8 query heads has a key and a value head of its own, and values
# are shorter than keys. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:kimi-k2,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestMlaRaggedPrefillCausalH8Qk192Vo128(MlaRaggedTests):
    """Test the definition mla_ragged_prefill_causal_h8_qk192_vo128."""

    name = "mla_ragged_prefill_causal_h8_qk192_vo128"
    interface = INTERFACE_1
    reference = staticmethod(reference_1)
    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 8
    QK_DIM = 192
    VO_DIM = 128


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
