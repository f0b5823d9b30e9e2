"""Reference tests of op_type gqa_ragged.

Rendered: don't edit. `gen-tests --op-type gqa_ragged` renders this file anew.

Each class tests one definition. It compares what the definition's `run()` returns with
- FlashInfer's kernels, live, on a CUDA device
- what these kernels returned when they were recorded, anywhere
- an independent float64 implementation in PyTorch, `oracle`, anywhere
- what it returns for related inputs, `relations`, anywhere
Tolerances: TOLERANCES below, else kernel_judge/comparison/tolerance.py by dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

from generator.ops.attention.cases import ragged_cases, ragged_inputs
from generator.ops.attention.flashinfer import prefill_backends, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import variant_of
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesFlashInfer,
    MatchesRecorded,
    Metamorphic,
    main,
)
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.relation import Relation

# ---- the op: cases, inputs, float64 oracle, production kernels

TOLERANCES = attention_tolerances(products=256, total=800)


def cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    return ragged_cases(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    axes = definition.axes
    return ragged_inputs(definition, case, stream, axes["head_dim"], axes["head_dim"])


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE [total_q, num_qo_heads], in float64."""
    return oracle_ragged(inputs, variant_of(definition))


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs, variant=variant_of(definition))


def relations(definition: Definition) -> list[Relation]:
    """Return the relations between calls with other layouts of the sequences."""
    return attention_relations(definition)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the prefill kernel."""
    return prefill_backends(definition)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(
        definition, inputs, backend, axes["head_dim"], axes["head_dim"]
    )


# ---- the interfaces

INTERFACE_GQA_RAGGED_PREFILL = Interface(
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
INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16 = Interface(
    inputs={
        "q": "float16[total_q, num_qo_heads, head_dim]",
        "k": "float16[total_kv, num_kv_heads, head_dim]",
        "v": "float16[total_kv, num_kv_heads, head_dim]",
        "qo_indptr": "int32[len_indptr]",
        "kv_indptr": "int32[len_indptr]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "float16[total_q, num_qo_heads, head_dim]",
        "lse": "float32[total_q, num_qo_heads]",
    },
    constraints=(
        "total_q == qo_indptr[-1].item()",
        "total_kv == kv_indptr[-1].item()",
    ),
)
INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK = Interface(
    inputs={
        "q": "bfloat16[total_q, num_qo_heads, head_dim]",
        "k": "bfloat16[total_kv, num_kv_heads, head_dim]",
        "v": "bfloat16[total_kv, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
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
# of gqa_ragged_prefill_causal_alibi_h32_kv32_d128,
# gqa_ragged_prefill_causal_alibi_h40_kv40_d128
def reference_gqa_ragged_prefill_causal_alibi():
    import math

    import torch


    def alibi_slopes(num_qo_heads: int) -> list[float]:
        # The largest power of 2 up to the number of heads; the others come between.
        whole = 1 << (num_qo_heads.bit_length() - 1)
        return [
            2 ** (-8 * (h + 1) / whole)
            if h < whole
            else 2 ** (-4 * (2 * (h - whole) + 1) / whole)
            for h in range(num_qo_heads)
        ]


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
        slopes = torch.tensor(alibi_slopes(num_qo_heads), device=q.device)
        slopes = slopes.reshape(num_kv_heads, group_size, 1)

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
            logits += slopes[..., None] * (key_positions - query_positions[:, None])
            logits.masked_fill_(future, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_cap30_h48_kv8_d128
def reference_gqa_ragged_prefill_causal_cap30_h48_kv8():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 30.0


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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_cap50_h16_kv8_d256,
# gqa_ragged_prefill_causal_cap50_h32_kv16_d128
def reference_gqa_ragged_prefill_causal_cap50():
    import math

    import torch

    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_cap50_w4095_h16_kv8_d256,
# gqa_ragged_prefill_causal_cap50_w4095_h32_kv16_d128
def reference_gqa_ragged_prefill_causal_cap50_w4095():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095
    # Bound of the scaled logits.
    LOGITS_SOFT_CAP = 50.0


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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits = LOGITS_SOFT_CAP * torch.tanh(logits / LOGITS_SOFT_CAP)
            logits.masked_fill_(hidden, -math.inf)
            attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_fp16_h32_kv32_d128 and 20 more definitions
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


# of gqa_ragged_prefill_causal_sink_h64_kv8_d64
def reference_gqa_ragged_prefill_causal_sink():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        sinks: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[1]
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgqk,khd->qhgd", weights, values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_sink_w127_h64_kv8_d64
def reference_gqa_ragged_prefill_causal_sink_w127():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 127


    @torch.no_grad()
    def run(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        sinks: torch.Tensor,
        qo_indptr: torch.Tensor,
        kv_indptr: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        _, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[1]
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns: of its sink alone.
        output = torch.zeros_like(q)
        lse = (sinks.float() / math.log(2)).repeat(len(q), 1)

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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(q_len, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
            logits.masked_fill_(hidden, -math.inf)
            # A sink is one more logit, unscaled, whose value is zero.
            sink = sinks.float().reshape(num_kv_heads, group_size, 1, 1)
            logits = torch.cat([logits, sink.expand(*logits.shape[:-1], 1)], dim=-1)
            weights = logits.softmax(dim=-1)[..., :-1]
            attended = torch.einsum("hgqk,khd->qhgd", weights, values)
            output[qo_start:qo_end] = attended.flatten(1, 2).to(q.dtype)
            # Base 2: log2 of the sum of exponentials.
            lse_nat = logits.logsumexp(dim=-1).flatten(0, 1)  # [num_qo_heads, q_len]
            lse[qo_start:qo_end] = lse_nat.T / math.log(2)
        return output, lse

    return run


# of gqa_ragged_prefill_causal_w1023_h32_kv16_d128,
# gqa_ragged_prefill_causal_w1023_h32_kv16_d256
def reference_gqa_ragged_prefill_causal_w1023_h32_kv16():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 1023


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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

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


# of gqa_ragged_prefill_causal_w4095_h32_kv32_d128,
# gqa_ragged_prefill_causal_w4095_h32_kv8_d128
def reference_gqa_ragged_prefill_causal_w4095_h32():
    import math

    import torch

    # Keys before a query's own that it sees; with its own that is one more.
    WINDOW_LEFT = 4095


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
            # [q_len, kv_len]
            hidden = key_positions[None, :] > query_positions[:, None]
            hidden |= key_positions[None, :] < query_positions[:, None] - WINDOW_LEFT

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


# of gqa_ragged_prefill_noncausal_h16_kv16_d64,
# gqa_ragged_prefill_noncausal_h20_kv20_d64, gqa_ragged_prefill_noncausal_h32_kv8_d128
def reference_gqa_ragged_prefill_noncausal():
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
            keys = k[kv_start:kv_end].float()  # [kv_len, num_kv_heads, head_dim]
            values = v[kv_start:kv_end].float()

            # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
            queries = q[qo_start:qo_end].float()
            queries = queries.reshape(-1, num_kv_heads, group_size, head_dim)
            logits = torch.einsum("qhgd,khd->hgqk", queries, keys) * sm_scale
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
    tolerances = TOLERANCES
    cases = staticmethod(cases)
    make_inputs = staticmethod(make_inputs)
    oracle = staticmethod(oracle)
    defined_rows = staticmethod(defined_rows)
    relations = staticmethod(relations)
    flashinfer_backends = staticmethod(flashinfer_backends)
    flashinfer_ground_truth = staticmethod(flashinfer_ground_truth)


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 32 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled logit of the key at j
# for a query at p, which is 0 for its own key. With n the largest power of 2 up to the
# number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n, and 2 ** (-4 *
# (2 * (h - n) + 1) / n) for the others. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:mpt-7b, model:bloom-7b1,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalAlibiH32Kv32D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_alibi_h32_kv32_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_alibi)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "94fe9c349f8105e081729c9b60b9424c90e14e02d1750c78ab63d1225dc35a37"


# Grouped-query attention over contiguous keys and values, prefill: 40 query heads share
# 40 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled logit of the key at j
# for a query at p, which is 0 for its own key. With n the largest power of 2 up to the
# number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head h < n, and 2 ** (-4 *
# (2 * (h - n) + 1) / n) for the others. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:baichuan2-13b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalAlibiH40Kv40D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_alibi_h40_kv40_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_alibi)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 40
    HEAD_DIM = 128
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name
    sha256 = "455b2e6f0ff8af11076a09f330946cd006a763398e607e64c85f5104fec27caf"


# Grouped-query attention over contiguous keys and values, prefill: 48 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 30 * tanh(l / 30), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:grok-1,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalCap30H48Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap30_h48_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap30_h48_kv8)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "c25b6480df4e2820eebf591dd31dae7147426361850fc323b51be226e22c755f"


# Grouped-query attention over contiguous keys and values, prefill: 16 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l / 50), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-9b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalCap50H16Kv8D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap50_h16_kv8_d256"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "850aaf696a27cc7a511852fe3ad6b0fbb940168e69f077056b0774aad42c08bb"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l / 50), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalCap50H32Kv16D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap50_h32_kv16_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "3b99eda01aa25724831e333a840b6e2acd11d102620d5cfc238166708a55965b"


# Grouped-query attention over contiguous keys and values, prefill: 16 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask and softmax. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-9b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalCap50W4095H16Kv8D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap50_w4095_h16_kv8_d256"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50_w4095)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 8
    HEAD_DIM = 256
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "ddfac76f58fef1e93c83b8444a63e099823513d66be7bf1185f259f8aeb6b1b4"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask and softmax. A query
# that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-2-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalCap50W4095H32Kv16D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap50_w4095_h32_kv16_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50_w4095)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name
    sha256 = "95c77dae9161e676fc067b719a5010cb76da5f11f6e3f1f2b959da23ce3d4df1"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 32 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries, keys, values and output are float16. A query that
# sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-2-7b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalFp16H32Kv32D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_fp16_h32_kv32_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "687adc8b3fc99e3721b7f71acd3bdf590c293b5596edb091385fff804a54a3e8"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. Queries, keys, values and output are float16. A query that
# sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b-awq,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalFp16H32Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_fp16_h32_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "8b7c3c69ad6a6ce8d2daa32036cd65d2511698e949ae0f69c946671c6e3e0979"


# Grouped-query attention over contiguous keys and values, causal prefill: 16 query
# heads share 2 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-32b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:4
class TestGqaRaggedPrefillCausalH16Kv2D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h16_kv2_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 128
    sha256 = "47b5c39b831fd37e8205f9e206c37e67784285a7a8b333a01158afcdef72ba89"


# Grouped-query attention over contiguous keys and values, prefill: 16 query heads share
# 2 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-next-80b-a3b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH16Kv2D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h16_kv2_d256"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 256
    sha256 = "20a2fca03011fc1ff65f27baf2ae67d3fc2770ca8ac66f81ecc10bb352e9fd23"


# Grouped-query attention over contiguous keys and values, prefill: 16 query heads share
# 2 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:gemma-4-26b-a4b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH16Kv2D512(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h16_kv2_d512"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 2
    HEAD_DIM = 512
    sha256 = "01fbcb9e51d9550db7f4ab26c486d8c8c342e582c3d553e55fc00a574fc1d67b"


# Grouped-query attention over contiguous keys and values, causal prefill: 20 query
# heads share 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-14b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:2
class TestGqaRaggedPrefillCausalH20Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h20_kv4_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    sha256 = "1fac62f239feb1d339aa85db17c8ae8f7a5906b22bcd754bfb6cae3f0145b1fd"


# Grouped-query attention over contiguous keys and values, causal prefill: 24 query
# heads share 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:llama-3.2-3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH24Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h24_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 24
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "903e0d37f3cba450f8b2019e981282a42df4abc1b22e7355d3e61c8f52e30cfe"


# Grouped-query attention over contiguous keys and values, prefill: 28 query heads share
# 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen2.5-7b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH28Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h28_kv4_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 28
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    sha256 = "ae85bea50b77478cb14ebd6e898ae57ea802b4905ad67f2b14777348b9d0c883"


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv16D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv16_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    sha256 = "4c0c7a7f58316d93fe24a0aa80db90bf2d2ea65d801775703dae578dc89c6847"


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:qwen3-30b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv4_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    sha256 = "b738ec48e78c1cae146b82db6c37ab2a4d15c1181091f9b9cc8f1bada39a2827"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:gemma-4-31b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv4D512(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv4_d512"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 4
    HEAD_DIM = 512
    sha256 = "39afe4e5102c126a7601d7ae0ac8050a6fdb5acd881157ba9ee680248c576141"


# Grouped-query attention over contiguous keys and values, causal prefill: 32 query
# heads share 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, model:llama-3.1-8b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "50aa048f607d4be334ee414942bb90687630e62c974db50e79ea850cd26d1c30"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:llama-3.2-1b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH32Kv8D64(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h32_kv8_d64"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    sha256 = "7e262e1916193b3c42d70edf3df7954d2b98e10e09a55d37f6b06b2e7899574f"


# Grouped-query attention over contiguous keys and values, prefill: 40 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-14b, model:llama-4-scout, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH40Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h40_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 40
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "c56de06fb510ba985bd00bb9d72f4318a48be1646bece86f77049cd647ac5f7a"


# Grouped-query attention over contiguous keys and values, prefill: 48 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:minimax-m2, model:mixtral-8x22b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH48Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h48_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 48
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "935dfb3964f0e6155bf477b38dbe07593b05db6a144dcf029238dd4c17f15f54"


# Grouped-query attention over contiguous keys and values, causal prefill: 5 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:llama-4-scout-17b-16e,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestGqaRaggedPrefillCausalH5Kv1D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h5_kv1_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 5
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    sha256 = "8277c6b3328173c74280eb535d40149e9673b5830fc0b52c1113faabeba1ccd8"


# Grouped-query attention over contiguous keys and values, prefill: 64 query heads share
# 4 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:qwen3-235b-a22b, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH64Kv4D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h64_kv4_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 4
    HEAD_DIM = 128
    sha256 = "a8a5a947622db7a92ff217f5a73ab6dd0acefbffc68f1b6dba0b057b26bb07ae"


# Grouped-query attention over contiguous keys and values, prefill: 64 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b,
# status:unverified, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper,
# tp:1
class TestGqaRaggedPrefillCausalH64Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h64_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "56b0ab519ca697a2e45d02195e8175c0db8d4854e91507839c0f28d1f4193513"


# Grouped-query attention over contiguous keys and values, causal prefill: 6 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:minimax-m2,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:8
class TestGqaRaggedPrefillCausalH6Kv1D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h6_kv1_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 6
    NUM_KV_HEADS = 1
    HEAD_DIM = 128
    sha256 = "1baa7d8d50349288eb33efaaa8d8c4d67db4a1a8c4580308a0d415c3b1dbf9b7"


# Grouped-query attention over contiguous keys and values, causal prefill: 8 query heads
# share 1 KV heads. The mask is causal and aligned bottom-right: query i of q_len sees
# keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, model:qwen3-next-80b-a3b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:2
class TestGqaRaggedPrefillCausalH8Kv1D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h8_kv1_d256"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 8
    NUM_KV_HEADS = 1
    HEAD_DIM = 256
    sha256 = "3f805fe7a40fdea87f5e9213c9e671e537c710fdedb27dab8e105eb71d651960"


# Grouped-query attention over contiguous keys and values, prefill: 96 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query that sees no key gives output 0 and lse -inf. lse is
# base 2.
# stage:prefill, model:glm-4.6, status:unverified,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalH96Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_h96_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal)
    NUM_QO_HEADS = 96
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    sha256 = "f7171900de187a0e22199765cebe94ee467cfbb28a4f85787a3c1d5c1a5b23c2"


# Grouped-query attention over contiguous keys and values, prefill: 64 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A head's sink is one more logit, natural and unscaled, whose
# value is zero: it adds to the sum of exponentials, and to lse. A query that sees no
# key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalSinkH64Kv8D64(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_sink_h64_kv8_d64"
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK
    reference = staticmethod(reference_gqa_ragged_prefill_causal_sink)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    sha256 = "03195c496b0dfadb1501d65c5c4b9c8063bd478850bbec6d6e69a2821d0a7ef3"


# Grouped-query attention over contiguous keys and values, prefill: 64 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 127 ... p, a sliding window of
# 128. A head's sink is one more logit, natural and unscaled, whose value is zero: it
# adds to the sum of exponentials, and to lse. A query that sees no key gives output 0
# and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b, model:gpt-oss-20b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalSinkW127H64Kv8D64(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_sink_w127_h64_kv8_d64"
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK
    reference = staticmethod(reference_gqa_ragged_prefill_causal_sink_w127)
    NUM_QO_HEADS = 64
    NUM_KV_HEADS = 8
    HEAD_DIM = 64
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name
    sha256 = "9b2af87d0b5d2281ecb471630398b836ca26ce5189a41e8bb98e67c101729717"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-3-27b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalW1023H32Kv16D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_w1023_h32_kv16_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w1023_h32_kv16)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 128
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "a573d5fe9b0d7d19d9d1133a04b76cfeb602ddca39a0b3a1953d1ef91b317b7c"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:gemma-4-31b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalW1023H32Kv16D256(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_w1023_h32_kv16_d256"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w1023_h32_kv16)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 16
    HEAD_DIM = 256
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name
    sha256 = "43111dc8ec77961fe0c5648436e2fffaf7e22d7de6c2a80a3f0ea39728730258"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 32 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:olmo-3-7b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalW4095H32Kv32D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_w4095_h32_kv32_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w4095_h32)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 32
    HEAD_DIM = 128
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "795095bb191de6056bdca35d2833f4d0312ccdeaea6c188a2950d35619bad20a"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding window of
# 4096. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:mistral-7b-v0.1,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillCausalW4095H32Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_w4095_h32_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w4095_h32)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name
    sha256 = "adbc4c6b872fa5cce9bc389a8c8faef5f53c8c6cedfce55f19468f5c36bce37b"


# Grouped-query attention over contiguous keys and values, prefill: 16 query heads share
# 16 KV heads. There is no mask: every query sees all keys. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:bge-large-en-v1.5,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillNoncausalH16Kv16D64(GqaRaggedTests):
    name = "gqa_ragged_prefill_noncausal_h16_kv16_d64"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_noncausal)
    NUM_QO_HEADS = 16
    NUM_KV_HEADS = 16
    HEAD_DIM = 64
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name
    sha256 = "b1d7427af44760c8206fc2a5edc5deea654226d1b2afbc6a50b9d62503a8bc2a"


# Grouped-query attention over contiguous keys and values, prefill: 20 query heads share
# 20 KV heads. There is no mask: every query sees all keys. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:whisper-large-v3,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillNoncausalH20Kv20D64(GqaRaggedTests):
    name = "gqa_ragged_prefill_noncausal_h20_kv20_d64"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_noncausal)
    NUM_QO_HEADS = 20
    NUM_KV_HEADS = 20
    HEAD_DIM = 64
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name
    sha256 = "0a9e8d973fab0c9fd44551944662f8793357d8586b0529e5744b36a77239253d"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 8 KV heads. There is no mask: every query sees all keys. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:llama-3.2-11b-vision,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
class TestGqaRaggedPrefillNoncausalH32Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_noncausal_h32_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    reference = staticmethod(reference_gqa_ragged_prefill_noncausal)
    NUM_QO_HEADS = 32
    NUM_KV_HEADS = 8
    HEAD_DIM = 128
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name
    sha256 = "6c93d07d649e15faaa69bc60ebb78879532919a6decf9e6df94f5288a81cbf48"


if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
