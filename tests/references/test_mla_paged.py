"""Reference tests of op_type mla_paged, rendered by gen-tests 0.1.0.

Don't edit: `gen-tests --op-type mla_paged` renders this file anew from the
definitions and from gen-tests' own sources (3dd85bc17f31f1e2).

Each class embeds one definition's `run()` and compares what it returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else reference_support/tolerance.py by dtype.

SHA-256 of the definitions:
041456ed35657f2847f75a11cd26f5bfb5a5aefaf5863709f454ac0dcd4c7921  mla_paged_decode_h16_ckv512_kpe64_ps1
dc097590111e3d5ba42adaf98411288ea8f872952a859494313f159538ebc802  mla_paged_decode_h16_ckv512_kpe64_ps64
f22b9bd42905fe74e8881b55e785f13b17cf7a984f544ad59cfd2600921f0741  mla_paged_decode_h8_ckv512_kpe64_ps1
475fbef4fdd9384a36e6a83342c7520cb187ba37816f0d4eab9eb481d6f5334a  mla_paged_prefill_causal_h16_ckv512_kpe64_ps1
380b4aa41681bae5e4adbf036d399d9ff87940bdba955e9624273c53a371c6e9  mla_paged_prefill_causal_h16_ckv512_kpe64_ps64
305bcbc7b738826af064a495f7a47a7a13343780b93a289eed5018dcd1ad9b31  mla_paged_prefill_causal_h8_ckv512_kpe64_ps1
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

# isort: split
from reference_support.attention import (
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
from reference_support.definition import Backend, Case, Definition, Interface
from reference_support.harness import GroundTruthsAgree, MatchesFlashInfer, main
from reference_support.metamorphic import Metamorphic
from reference_support.paging import (
    cache,
    indptr,
    input_table,
    kv_lengths,
    page_table,
    query_starts,
)
from reference_support.recorded import MatchesRecorded
from reference_support.related_attention import attention_relations
from reference_support.relation import Relation
from reference_support.stream import Stream

# ---- the op: cases, inputs, float64 oracle, production kernels

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


# ---- the interfaces

INTERFACE_1 = Interface(
    inputs={
        "q_nope": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[batch_size, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_2 = Interface(
    inputs={
        "q_nope": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[batch_size, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim_ckv]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_3 = Interface(
    inputs={
        "q_nope": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[total_q, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_4 = Interface(
    inputs={
        "q_nope": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "q_pe": "bfloat16[total_q, num_qo_heads, head_dim_kpe]",
        "ckv_cache": "bfloat16[num_pages, page_size, head_dim_ckv]",
        "kpe_cache": "bfloat16[num_pages, page_size, head_dim_kpe]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim_ckv]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)

# ---- the references, as the definitions have them


# fmt: off
# of mla_paged_decode_h16_ckv512_kpe64_ps1, mla_paged_decode_h8_ckv512_kpe64_ps1
def reference_1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, _ = q_nope.shape

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
            kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


# of mla_paged_decode_h16_ckv512_kpe64_ps64
def reference_2():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, _ = q_nope.shape
        page_size = ckv_cache.shape[1]

        # What a sequence without keys returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (batch_size, num_qo_heads), -math.inf, dtype=torch.float32, device=q_nope.device
        )

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

            # All heads share the compressed KV, which is both key and value.
            logits = (q_nope[b].float() @ ckv.T + q_pe[b].float() @ kpe.T) * sm_scale
            output[b] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


# of mla_paged_prefill_causal_h16_ckv512_kpe64_ps1,
# mla_paged_prefill_causal_h8_ckv512_kpe64_ps1
def reference_3():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            kv_len = kv_end - kv_start
            ckv = ckv_cache[pages, 0].float()  # [kv_len, head_dim_ckv]
            kpe = kpe_cache[pages, 0].float()  # [kv_len, head_dim_kpe]

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
            key_positions = torch.arange(kv_len, device=device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
            output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


# of mla_paged_prefill_causal_h16_ckv512_kpe64_ps64
def reference_4():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_nope: torch.Tensor,
        q_pe: torch.Tensor,
        ckv_cache: torch.Tensor,
        kpe_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total_q, num_qo_heads, _ = q_nope.shape
        device = q_nope.device
        page_size = ckv_cache.shape[1]

        # What a query that sees no key returns.
        output = torch.zeros_like(q_nope)
        lse = torch.full(
            (total_q, num_qo_heads), -math.inf, dtype=torch.float32, device=device
        )

        qo_bounds = qo_indptr.tolist()
        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(kv_bounds) - 1):
            qo_start, qo_end = qo_bounds[b], qo_bounds[b + 1]
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if qo_start == qo_end or kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            ckv = ckv_cache[pages].flatten(0, 1)[:kv_len].float()
            kpe = kpe_cache[pages].flatten(0, 1)[:kv_len].float()

            # The last query stands at the last key. Queries that stand before the first
            # key see none: only the last kv_len queries take part.
            qo_start = max(qo_start, qo_end - kv_len)
            q_len = qo_end - qo_start
            query_positions = torch.arange(kv_len - q_len, kv_len, device=device)
            key_positions = torch.arange(kv_len, device=device)
            future = key_positions[None, :] > query_positions[:, None]  # [q_len, kv_len]

            # All heads share the compressed KV, which is both key and value.
            nope = q_nope[qo_start:qo_end].float()
            pe = q_pe[qo_start:qo_end].float()
            logits = (nope @ ckv.T + pe @ kpe.T) * sm_scale
            logits.masked_fill_(future[:, None, :], -math.inf)  # [q_len, heads, kv_len]
            output[qo_start:qo_end] = (logits.softmax(dim=-1) @ ckv).to(q_nope.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[qo_start:qo_end] = logits.logsumexp(dim=-1) / math.log(2)
        return output, lse

    return run


# fmt: on
# ---- the tests


class MlaPagedTests(GroundTruthsAgree, MatchesFlashInfer, MatchesRecorded, Metamorphic):
    """What the tests of mla_paged share."""

    op_type = "mla_paged"
    sizes = ("small", "medium")
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, 16 query heads share one
# cache. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
class TestMlaPagedDecodeH16Ckv512Kpe64Ps1(MlaPagedTests):
    """Test the definition mla_paged_decode_h16_ckv512_kpe64_ps1."""

    name = "mla_paged_decode_h16_ckv512_kpe64_ps1"
    interface = INTERFACE_1
    reference = staticmethod(reference_1)
    NUM_QO_HEADS = 16
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, 16 query heads share one
# cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
class TestMlaPagedDecodeH16Ckv512Kpe64Ps64(MlaPagedTests):
    """Test the definition mla_paged_decode_h16_ckv512_kpe64_ps64."""

    name = "mla_paged_decode_h16_ckv512_kpe64_ps64"
    interface = INTERFACE_2
    reference = staticmethod(reference_2)
    NUM_QO_HEADS = 16
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 64


# Multi-head latent attention over a paged cache, decode, with the projections absorbed:
# logits are q_nope . ckv + q_pe . kpe, the values are ckv, 8 query heads share one
# cache. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:kimi-k2, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
class TestMlaPagedDecodeH8Ckv512Kpe64Ps1(MlaPagedTests):
    """Test the definition mla_paged_decode_h8_ckv512_kpe64_ps1."""

    name = "mla_paged_decode_h8_ckv512_kpe64_ps1"
    interface = INTERFACE_1
    reference = staticmethod(reference_1)
    NUM_QO_HEADS = 8
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, 16 query heads
# share one cache. A page holds one token. The mask is causal and aligned bottom-right:
# query i of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
class TestMlaPagedPrefillCausalH16Ckv512Kpe64Ps1(MlaPagedTests):
    """Test the definition mla_paged_prefill_causal_h16_ckv512_kpe64_ps1."""

    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps1"
    interface = INTERFACE_3
    reference = staticmethod(reference_3)
    NUM_QO_HEADS = 16
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, 16 query heads
# share one cache. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none
# where it has no pages. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:deepseek-v3, model:deepseek-r1,
# fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper, tp:8
class TestMlaPagedPrefillCausalH16Ckv512Kpe64Ps64(MlaPagedTests):
    """Test the definition mla_paged_prefill_causal_h16_ckv512_kpe64_ps64."""

    name = "mla_paged_prefill_causal_h16_ckv512_kpe64_ps64"
    interface = INTERFACE_4
    reference = staticmethod(reference_4)
    NUM_QO_HEADS = 16
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 64


# Multi-head latent attention over a paged cache, causal prefill, with the projections
# absorbed: logits are q_nope . ckv + q_pe . kpe, the values are ckv, 8 query heads
# share one cache. A page holds one token. The mask is causal and aligned bottom-right:
# query i of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives
# output 0 and lse -inf. lse is base 2.
# stage:prefill, model:kimi-k2, fi_api:flashinfer.mla.BatchMLAPagedAttentionWrapper,
# tp:8
class TestMlaPagedPrefillCausalH8Ckv512Kpe64Ps1(MlaPagedTests):
    """Test the definition mla_paged_prefill_causal_h8_ckv512_kpe64_ps1."""

    name = "mla_paged_prefill_causal_h8_ckv512_kpe64_ps1"
    interface = INTERFACE_3
    reference = staticmethod(reference_3)
    NUM_QO_HEADS = 8
    HEAD_DIM_CKV = 512
    HEAD_DIM_KPE = 64
    PAGE_SIZE = 1


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
