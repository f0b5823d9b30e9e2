"""mla_ragged: multi-head latent attention before compression, over contiguous keys.

Each query head has a key and a value head of its own; a key has a rotary part that a
value has not, so values are shorter. The causal mask is aligned bottom-right; LSE is
base 2.
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
