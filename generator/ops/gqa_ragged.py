"""gqa_ragged: grouped-query attention over contiguous keys and values.

The sequences of a batch lie one after the other, queries by `qo_indptr`, keys and values
by `kv_indptr`. The causal mask is aligned bottom-right; LSE is base 2.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.support.attention import (
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
from generator.support.definition import Backend, Case, Definition
from generator.support.paging import indptr
from generator.support.related_attention import attention_relations
from generator.support.relation import Relation
from generator.support.stream import Stream

TOLERANCES = (
    *TO_ORACLE,
    *FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    lse_of_tensor_cores(products=256, total=800),
)


def cases(definition: Definition) -> list[Case]:
    """Return the attention cases of prefill, for keys without pages."""
    return ragged_cases()


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 queries, keys and values of ragged sequences."""
    axes = {**definition.axes, **case.axes}
    dim = axes["head_dim"]
    q_shape = (axes["total_q"], axes["num_qo_heads"], dim)
    kv_shape = (axes["total_kv"], axes["num_kv_heads"], dim)
    q_std = case.params["q_std"]
    return {
        "q": stream.child("q").values(q_shape, q_std, torch.bfloat16),
        "k": stream.child("k").values(kv_shape, 1.0, torch.bfloat16),
        "v": stream.child("v").values(kv_shape, 1.0, torch.bfloat16),
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": indptr(case.params["kv_lens"]),
        "sm_scale": scale_of(case, dim),
    }


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
    """Call FlashInfer's batch wrapper for ragged prefill."""
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
        definition.axes["head_dim"],
        causal=True,
        sm_scale=inputs["sm_scale"],
        q_data_type=q.dtype,
        kv_data_type=k.dtype,
    )
    return wrapper.run(q, k, v, return_lse=True)
