"""Reference tests of op_type gqa_paged.

Rendered: don't edit. `gen-tests --op-type gqa_paged` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else generator/testing/tolerance.py by dtype.

SHA-256 of the definitions:
5409a3552c781042f7cbeefdf0ace39ad0c99282c60304c92a6331426a5d4598  gqa_paged_decode_h16_kv2_d128_ps1
855d618a7f9f97f63a414933e65c49bd8f4c988acb4c61cb4de08503d852766c  gqa_paged_decode_h16_kv2_d128_ps64
49e191aa92533d4b4a0eb2348e18e2ccc8e9e97f3b46a5b9f3b6d7d112ec0eff  gqa_paged_decode_h20_kv4_d128_ps1
54364a8273b60315c5ace47515a122d776e5b1dd93a377af4d7c8668c199424a  gqa_paged_decode_h20_kv4_d128_ps64
0dc5d1d35e7d8ef7dba27c3f1fac471956efd3dd8dd33e207bea61e6448b0559  gqa_paged_decode_h24_kv4_d128_ps64
43c64effa755013ffd29cdf51ee6f2bfeeb1fc6d3b0fbdff854bb8f996ca4f94  gqa_paged_decode_h24_kv8_d128_ps1
40ff0f888150d7d21b60e7aa1eb063e0af36cbe5a2f3aa74e395a249c5200303  gqa_paged_decode_h24_kv8_d128_ps64
9e6339df71f0420335653f0e92ace6270bcddb9e3b975647a2d27c9e4bb6a22f  gqa_paged_decode_h32_kv16_d128_ps1
24ddf30f542cfd6263f74ab5ccb8a4224c4f65294a702824b0b2d37288803218  gqa_paged_decode_h32_kv16_d128_ps64
930281dfe930b7f131f8422591c4c846cc4826e64ae3c110da78b8c4719524af  gqa_paged_decode_h32_kv4_d128_ps1
355e66645385de431faa3fd47b87327a28f1067d7915aab5e78bd951568c05c3  gqa_paged_decode_h32_kv4_d128_ps64
b5d2e4e2ae657eb6a0a35014fcc4141b0fba52b7657b17cca8961964b6592b81  gqa_paged_decode_h32_kv8_d128_ps1
d5ea98648176425a9165ca34c235752a327e77b0838a4ba1f17bfca7e3d13c79  gqa_paged_decode_h32_kv8_d128_ps64
bf0b1b72933809c741b06540e36e17fcaca201d389213665361192cf0e62a234  gqa_paged_decode_h48_kv8_d128_ps1
bf6f303998ad4770eacccd16ab15183c04c0dc29ac1f10d496049d1f69b36251  gqa_paged_decode_h5_kv1_d128_ps1
8b9db6721d0dd7b15ebe940902b512f10d0f136ca09208e6b832331483b5a7db  gqa_paged_decode_h6_kv1_d128_ps1
549cc069255d232d4a6a83836d26a7b391b4b99c57cebdd4b5030462608ef8ce  gqa_paged_decode_h6_kv1_d128_ps64
70edf1ca108e89868430e5243f09940f62c2cf2e6929e7d9bac59ef5adafd976  gqa_paged_prefill_causal_h16_kv1_d128_ps64
d86a4b70d99e5516d6fde801c7ece4c2c4b0c9021f7f147089bc60309feb46ca  gqa_paged_prefill_causal_h16_kv2_d128_ps1
8c7d04bd87078868c60dded24a74687c118790a1302a1b70128f5f6f1ca26674  gqa_paged_prefill_causal_h16_kv2_d128_ps64
1b5a9c3681bd7264f4a9d7faa569e61b976f412f2f0075ead6b0488325447574  gqa_paged_prefill_causal_h20_kv4_d128_ps1
903a3588c6217055b3c43781ce6bb50185a7123472bfc3edf9e76a32eba92cbd  gqa_paged_prefill_causal_h20_kv4_d128_ps64
97f811219e9d5f3ced8edb720936c12113d656c1aa4de75a0f808ad720a5f678  gqa_paged_prefill_causal_h24_kv4_d128_ps1
8459407804543bbca772640e69bfe42e9c7c8433ad4ff607951a9e44a92b9b4c  gqa_paged_prefill_causal_h24_kv4_d128_ps64
1a44f5b784f4ffa9afa0e20e8bd232530791ebd838042be5b41e7b5589b28185  gqa_paged_prefill_causal_h24_kv8_d128_ps1
f0e421e7e679fa16339f4104a1b87f2ddefc1da603372d7a854da5cf8c71e96a  gqa_paged_prefill_causal_h24_kv8_d128_ps64
561bca8c7995b51eda0e6d4cd6fd4ca639f3fa3c6b1ace684773d36711c68f75  gqa_paged_prefill_causal_h32_kv16_d128_ps1
d72d5363ccc737818117ccd808b9cd7316d8db7961c1d6c3a6f88513862dafde  gqa_paged_prefill_causal_h32_kv16_d128_ps64
f5683e16b7ae9b49aff9b7e21b34d7e6be51024074d1c6bdb554638e63b2ccc1  gqa_paged_prefill_causal_h32_kv4_d128_ps1
f10e8dc4e27547754450b972704e115d7b49d0b2e27b4ed1f1cc2ef5bb7b0159  gqa_paged_prefill_causal_h32_kv4_d128_ps64
f0e2b5e52deec37ba687a4e8daf4b1ea5a78345ad080b9e549b707737e33c3b7  gqa_paged_prefill_causal_h32_kv8_d128_ps1
59a44586cd1178af68224699579daea00142313149dcc9e3fc6937115682a75c  gqa_paged_prefill_causal_h32_kv8_d128_ps64
ae1e3bd8b7656054407a883f394bc881713d302f123702b93cf408257fca5a70  gqa_paged_prefill_causal_h40_kv10_d128_ps1
e922de4c3eb5c86d2f0dd96d6268439795dc6b46d06c7abd9f33106f6b7adb19  gqa_paged_prefill_causal_h5_kv1_d128_ps1
0ed82da8219601ce09538473c60f4b2a2a8663b8310f43a77ffd7d78e6a3b926  gqa_paged_prefill_causal_h5_kv1_d128_ps64
ad7ddf1a8d99c6d436a2d42373f303542773bc479ea8a96fe40ea4d268b44da5  gqa_paged_prefill_causal_h6_kv1_d128_ps1
20c291889a9d6152c5d86deee6697e2e3a81f2cac2c5303368685ca094c7b898  gqa_paged_prefill_causal_h6_kv1_d128_ps64
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.attention.cases import decode_cases, prefill_cases, scale_of
from generator.ops.attention.flashinfer import FA2, FA3, workspace
from generator.ops.attention.oracle import oracle_paged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.sequences import is_prefill
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.paging import cache, indptr, input_table, page_table
from generator.testing.definition import Backend, Case, Definition, Interface
from generator.testing.harness import GroundTruthsAgree, MatchesFlashInfer, main
from generator.testing.metamorphic import Metamorphic
from generator.testing.relation import Relation
from generator.testing.replay import MatchesRecorded
from generator.testing.seeded_inputs import Stream

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES = attention_tolerances(products=256, total=800)
_CUDA_CORES = Backend("cuda-cores")
# head ratios that the kernel without tensor cores is compiled for
_CUDA_CORE_RATIOS = (1, 2, 4, 8)


def cases(definition: Definition) -> list[Case]:
    """Return the decode or prefill cases for the definition's page size."""
    of_stage = prefill_cases if is_prefill(definition) else decode_cases
    return of_stage(definition.axes["page_size"])


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs, with pages in random order and loud stale slots.

    q bfloat16 [total_q or batch_size, num_qo_heads, head_dim]; k_cache and v_cache
    bfloat16 [num_pages, page_size, num_kv_heads, head_dim]; the page table int32.
    """
    axes = {**definition.axes, **case.axes}
    table = page_table(
        case.params["kv_lens"], axes["page_size"], axes["num_pages"], stream
    )
    heads, dim = axes["num_qo_heads"], axes["head_dim"]
    cache_shape = (axes["num_pages"], axes["page_size"], axes["num_kv_heads"], dim)
    made = {
        "q": stream.child("q").values(
            (axes["total_q"], heads, dim), case.params["q_std"], torch.bfloat16
        ),
        "k_cache": cache(cache_shape, table, stream.child("k"), torch.bfloat16),
        "v_cache": cache(cache_shape, table, stream.child("v"), torch.bfloat16),
        "qo_indptr": indptr(case.params["q_lens"]),
        "kv_indptr": table.indptr,
        "kv_indices": table.indices,
        "kv_last_page_len": table.last_page_len,
        "sm_scale": scale_of(case, dim),
    }
    return {name: made[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [queries, num_qo_heads], in float64."""
    return oracle_paged(inputs["q"], inputs["k_cache"], inputs["v_cache"], inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs, definition.axes["page_size"])


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls with other layouts of the sequences."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3; for decode also the kernel without tensor cores."""
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    if is_prefill(definition) or ratio not in _CUDA_CORE_RATIOS:
        return (FA2, FA3)
    return (_CUDA_CORES, FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's paged decode or prefill."""
    import flashinfer

    q, sm_scale = inputs["q"], inputs["sm_scale"]
    table = input_table(inputs)
    # the wrappers add last_page_len even without a page: an empty sequence needs 0
    last = table.last_page_len.where(table.indptr.diff() > 0, 0)
    sizes = [
        definition.axes[axis]
        for axis in ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    ]
    types = {"q_data_type": q.dtype, "kv_data_type": inputs["k_cache"].dtype}
    if is_prefill(definition):
        prefill = flashinfer.BatchPrefillWithPagedKVCacheWrapper(
            workspace(q.device), "NHD", backend=backend
        )
        prefill.plan(
            inputs["qo_indptr"],
            table.indptr,
            table.indices,
            last,
            *sizes,
            causal=True,
            sm_scale=sm_scale,
            **types,
        )
        return prefill.run(q, (inputs["k_cache"], inputs["v_cache"]), return_lse=True)
    tensor_cores = backend != _CUDA_CORES.name
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
        workspace(q.device),
        "NHD",
        use_tensor_cores=tensor_cores,
        backend=backend if tensor_cores else "auto",
    )
    decode.plan(table.indptr, table.indices, last, *sizes, sm_scale=sm_scale, **types)
    return decode.run(q, (inputs["k_cache"], inputs["v_cache"]), return_lse=True)


# ---- the interfaces

INTERFACE_GQA_PAGED_DECODE_PS1 = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_DECODE_PS64 = Interface(
    inputs={
        "q": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "lse": "float32[batch_size, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64 = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1 = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "num_kv_indices == kv_indptr[-1].item()",
    ),
)

# ---- the references, as the definitions have them


# fmt: off
# of gqa_paged_decode_h16_kv2_d128_ps1 and 8 more definitions
def reference_gqa_paged_decode_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        num_kv_heads = k_cache.shape[2]
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
            values = v_cache[pages, 0].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_decode_h16_kv2_d128_ps64 and 7 more definitions
def reference_gqa_paged_decode_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch_size, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a sequence without keys returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        kv_bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(batch_size):
            kv_start, kv_end = kv_bounds[b], kv_bounds[b + 1]
            if kv_start == kv_end:
                continue
            pages = kv_indices[kv_start:kv_end]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (kv_end - kv_start - 1) * page_size + last_page_lens[b]
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[b].float().reshape(num_kv_heads, group_size, head_dim)
            logits = torch.einsum("hgd,khd->hgk", queries, keys) * sm_scale
            attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), values)
            output[b] = attended.flatten(0, 1).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse[b] = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return output, lse

    return run


# of gqa_paged_prefill_causal_h16_kv1_d128_ps64 and 9 more definitions
def reference_gqa_paged_prefill_causal_ps64():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        _, page_size, num_kv_heads, _ = k_cache.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

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
            # [kv_len, num_kv_heads, head_dim]
            keys = k_cache[pages].flatten(0, 1)[:kv_len].float()
            values = v_cache[pages].flatten(0, 1)[:kv_len].float()

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


# of gqa_paged_prefill_causal_h16_kv2_d128_ps1 and 9 more definitions
def reference_gqa_paged_prefill_causal_ps1():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        num_kv_heads = k_cache.shape[2]
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
            pages = kv_indices[kv_start:kv_end]
            kv_len = kv_end - kv_start
            keys = k_cache[pages, 0].float()  # [kv_len, num_kv_heads, head_dim]
            values = v_cache[pages, 0].float()

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


class GqaPagedTests(GroundTruthsAgree, MatchesFlashInfer, MatchesRecorded, Metamorphic):
    """What the tests of gqa_paged share."""

    op_type = "gqa_paged"
    sizes = ("small", "medium")
    HEAD_DIM = 128
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 16 query heads share 2 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:4
class TestGqaPagedDecodeH16Kv2D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 20 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:qwen3-14b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH20Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h20_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 20 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-14b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH20Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h20_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:mixtral-8x22b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:2
class TestGqaPagedDecodeH24Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.2-3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH24Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 24 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.2-3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH24Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h24_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:gemma-3-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv16D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv16_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 16 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:gemma-3-27b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 4 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:qwen3-30b-a3b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 32 query heads share 8 KV
# heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it
# has no pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:llama-3.1-8b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, decode: 48 query heads share 8 KV
# heads. A page holds one token. A sequence without keys gives output 0 and lse -inf.
# lse is base 2.
# stage:decode, model:mixtral-8x22b,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:1
class TestGqaPagedDecodeH48Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h48_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 5 query heads share 1 KV heads.
# A page holds one token. A sequence without keys gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:llama-4-scout,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH5Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h5_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 6 query heads share 1 KV heads.
# A page holds one token. A sequence without keys gives output 0 and lse -inf. lse is
# base 2.
# stage:decode, model:minimax-m2,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH6Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_decode_h6_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_DECODE_PS1
    reference = staticmethod(reference_gqa_paged_decode_ps1)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, decode: 6 query heads share 1 KV heads.
# A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where it has no
# pages. A sequence without keys gives output 0 and lse -inf. lse is base 2.
# stage:decode, model:minimax-m2,
# fi_api:flashinfer.decode.BatchDecodeWithPagedKVCacheWrapper, tp:8
class TestGqaPagedDecodeH6Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_decode_h6_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_DECODE_PS64
    reference = staticmethod(reference_gqa_paged_decode_ps64)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-235b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 1
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 2
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 16 query heads share 2
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-70b, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:4
class TestGqaPagedPrefillCausalH16Kv2D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h16_kv2_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 20 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:2
class TestGqaPagedPrefillCausalH20Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 20 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:2
class TestGqaPagedPrefillCausalH20Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h20_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# model:mixtral-8x22b, tp:2
class TestGqaPagedPrefillCausalH24Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper,
# model:mixtral-8x22b, tp:2
class TestGqaPagedPrefillCausalH24Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 8
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH24Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 24 query heads share 8
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH24Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h24_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 16
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv16D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 16
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv16D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv16_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 4
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 4
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv4D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv4_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 8
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv8D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 32 query heads share 8
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH32Kv8D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h32_kv8_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 40 query heads share 10
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:phi-4-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:1
class TestGqaPagedPrefillCausalH40Kv10D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h40_kv10_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 10
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 5 query heads share 1
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:llama-4-scout,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH5Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 5 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-4-scout,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH5Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h5_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    PAGE_SIZE = 64


# Grouped-query attention over a paged KV cache, causal prefill: 6 query heads share 1
# KV heads. A page holds one token. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH6Kv1D128Ps1(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps1"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS1
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps1)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    PAGE_SIZE = 1


# Grouped-query attention over a paged KV cache, causal prefill: 6 query heads share 1
# KV heads. A sequence has (pages - 1) * page_size + kv_last_page_len keys, none where
# it has no pages. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithPagedKVCacheWrapper, tp:8
class TestGqaPagedPrefillCausalH6Kv1D128Ps64(GqaPagedTests):
    name = "gqa_paged_prefill_causal_h6_kv1_d128_ps64"
    interface = INTERFACE_GQA_PAGED_PREFILL_CAUSAL_PS64
    reference = staticmethod(reference_gqa_paged_prefill_causal_ps64)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    PAGE_SIZE = 64


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
