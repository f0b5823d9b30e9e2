"""mla_paged: multi-head latent attention over a paged cache of latents.

Logits are q_nope·ckv + q_pe·kpe. All heads share one key, and the values are the latents
ckv, so the output is in the latent space. Decode has one query a sequence. Prefill,
which has the input `qo_indptr`, has several under a causal mask aligned bottom-right, or that of
the input `custom_mask`, where a tree of drafts is verified.
LSE is base 2. Interfaces of page size 1 have no kv_last_page_len. A cache in 8 bits
(`kve4m3` in the name) has a scale for each of its parts; that of ckv is for the values
too. With the input `return_lse`, which calls pass, LSE is returned where it is true.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from generator.ops.attention.caches import (
    drawn_dtype,
    drawn_scale,
    stored,
    stored_scales,
)
from generator.ops.attention.cases import (
    QK_NOPE_HEAD_DIM,
    decode_cases,
    latent_queries,
    prefill_cases,
    scale_of,
)
from generator.ops.attention.flashinfer import FA2, FA3, workspace
from generator.ops.attention.masks import tree_masks
from generator.ops.attention.oracle import oracle_paged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import has_mask, variant_of
from generator.ops.op_types.mla_paged.sglang import sglang_backends, sglang_ground_truth
from generator.ops.paging import (
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_table,
    query_starts,
)
from kernel_judge.definition import Backend, Case, Definition
from kernel_judge.inputs.memory import dtype_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

TOLERANCES = attention_tolerances(products=576, total=1090)
FA2_OF_SM90 = replace(FA2, min_sm=90, max_sm=90)


def cases(definition: Definition) -> list[Case]:
    """Return the decode or prefill cases for the definition's page size."""
    of_stage = prefill_cases if is_prefill(definition) else decode_cases
    return of_stage(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, with pages in random order and loud stale slots.

    q_nope and q_pe bfloat16 [total_q or batch_size, num_qo_heads, d], ckv_cache and
    kpe_cache [num_pages, page_size, d], d being head_dim_ckv or head_dim_kpe; the page
    table int32. Caches with a scale are stored divided by it.
    """
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    inputs: dict[str, Any] = {
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "return_lse": True,
        "sm_scale": scale_of(case, QK_NOPE_HEAD_DIM + axes["head_dim_kpe"]),
    }
    inputs |= latent_queries(axes, case, axes["total_q"], stream)
    for name in ("ckv", "kpe"):
        shape = (axes["num_pages"], axes["page_size"], axes[f"head_dim_{name}"])
        scale = inputs[f"{name}_scale"] = drawn_scale(definition, case, name)
        dtype = dtype_of(definition.interface.input_specs[f"{name}_cache"].dtype)
        drawn = drawn_dtype(scale, dtype)
        values = cache(shape, table, stream.child(name), drawn)
        inputs[f"{name}_cache"] = stored(values, scale, dtype)
    if has_mask(definition):
        inputs["custom_mask"] = tree_masks(case, stream)
    return {name: inputs[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q_nope, and LSE [queries, num_qo_heads], in float64."""
    q = torch.cat([inputs["q_nope"], inputs["q_pe"]], dim=2)
    keys = torch.cat([inputs["ckv_cache"], inputs["kpe_cache"]], dim=2)
    values = inputs["ckv_cache"][:, :, None]
    scales: tuple[Any, Any] = 1.0, 1.0
    if stored_scales(definition):
        of_ckv, of_kpe = inputs["ckv_scale"], inputs["kpe_scale"]
        of_keys = torch.full((keys.shape[2],), of_ckv, dtype=torch.float64)
        of_keys[values.shape[3] :] = of_kpe
        scales = of_keys.to(q.device), of_ckv
    variant = variant_of(definition)
    return oracle_paged(q, keys[:, :, None], values, inputs, variant, scales)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs, definition.axes["page_size"])


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the MLA kernel.

    A cache in 8 bits has kernels for compute capability 9.0 alone; none takes a mask.
    """
    if has_mask(definition):
        return ()
    return (FA2_OF_SM90 if stored_scales(definition) else FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's paged MLA wrapper."""
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
        is_prefill(definition),
        inputs["sm_scale"],
        q.dtype,
        ckv.dtype,
    )
    caches = ckv, inputs["kpe_cache"]
    scales = {name: inputs[name] for name in stored_scales(definition)}
    return wrapper.run(q, inputs["q_pe"], *caches, **scales, return_lse=True)


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={
        "flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth),
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
    },
)
