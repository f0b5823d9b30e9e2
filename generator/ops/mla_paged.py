"""mla_paged: multi-head latent attention over a paged cache of latents.

Logits are q_nope·ckv + q_pe·kpe; the values are the latents ckv themselves, so the output
lies in the latent space and every head reads one shared key. Decode has one query a
sequence, prefill (`qo_indptr` among the inputs) several under a causal mask aligned
bottom-right. LSE is base 2. Interfaces of page size 1 carry no kv_last_page_len.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.support.attention import (
    FA2,
    FA3,
    FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    QK_NOPE_HEAD_DIM,
    TO_ORACLE,
    decode_cases,
    lse_of_tensor_cores,
    oracle_paged,
    prefill_cases,
    rows_with_a_key,
    scale_of,
    workspace,
)
from generator.support.definition import Backend, Case, Definition
from generator.support.paging import (
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_table,
    query_starts,
)
from generator.support.related_attention import attention_relations
from generator.support.relation import Relation
from generator.support.stream import Stream

TOLERANCES = (
    *TO_ORACLE,
    *FROM_BF16_WEIGHTS,
    LSE_FROM_BF16_SUM,
    lse_of_tensor_cores(products=576, total=1090),
)


def cases(definition: Definition) -> list[Case]:
    """Return the attention cases for the definition's page size."""
    prefill = "qo_indptr" in definition.interface.inputs
    return (prefill_cases if prefill else decode_cases)(definition.axes["page_size"])


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return bfloat16 queries and latents, with pages shuffled and stale slots loud."""
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    made: dict[str, Any] = {
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]),
    }
    # 576 products a logit and a scale made for 192: less spread gives the same logits
    std = case.params["q_std"] / math.sqrt(3.0)
    for part, axis in (("nope", "head_dim_ckv"), ("pe", "head_dim_kpe")):
        shape = (axes["total_q"], axes["num_qo_heads"], axes[axis])
        made[f"q_{part}"] = stream.child(part).values(shape, std, torch.bfloat16)
    for name in ("ckv", "kpe"):
        shape = (axes["num_pages"], axes["page_size"], axes[f"head_dim_{name}"])
        made[f"{name}_cache"] = cache(shape, table, stream.child(name), torch.bfloat16)
    return {name: made[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output and LSE in float64: attention with one key of both parts."""
    q = torch.cat([inputs["q_nope"], inputs["q_pe"]], dim=2)
    keys = torch.cat([inputs["ckv_cache"], inputs["kpe_cache"]], dim=2)
    return oracle_paged(q, keys[:, :, None], inputs["ckv_cache"][:, :, None], inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see a key: bool [total_q]."""
    return rows_with_a_key(inputs, definition.axes["page_size"])


def relations(definition: Definition) -> list[Relation]:
    """Return what holds between calls however sequences are laid out."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return both generations of the MLA kernel."""
    return (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Call FlashInfer's paged MLA wrapper; decode is prefill of one query each."""
    import flashinfer

    q, ckv = inputs["q_nope"], inputs["ckv_cache"]
    page_size = definition.axes["page_size"]
    kv_lens = kv_lengths(input_table(inputs), page_size)
    wrapper = flashinfer.mla.BatchMLAPagedAttentionWrapper(
        workspace(q.device), backend=backend
    )
    wrapper.plan(
        query_starts(inputs),
        inputs["kv_indptr"],
        inputs["kv_indices"],
        torch.tensor(kv_lens, dtype=torch.int32, device=q.device),
        definition.axes["num_qo_heads"],
        definition.axes["head_dim_ckv"],
        definition.axes["head_dim_kpe"],
        page_size,
        "qo_indptr" in inputs,
        inputs["sm_scale"],
        q.dtype,
        ckv.dtype,
    )
    return wrapper.run(q, inputs["q_pe"], ckv, inputs["kpe_cache"], return_lse=True)
