"""Reference tests of op_type gqa_ragged.

Rendered: don't edit. `gen-tests --op-type gqa_ragged` renders this file anew.

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
from typing import Any

import torch

from generator.ops.attention.cases import ragged_cases, ragged_inputs
from generator.ops.attention.flashinfer import prefill_backends, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import LSE_OF_MANY_KEYS, attention_tolerances
from generator.ops.attention.variant import variant_of
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.attention.oracle, generator.ops.attention.variant
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.attention.relations

TOLERANCES = (*attention_tolerances(products=256, total=800), LSE_OF_MANY_KEYS)


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


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(
        definition, inputs, backend, axes["head_dim"], axes["head_dim"]
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(prefill_backends, flashinfer_ground_truth)},
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
    constraints=("total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"),
)
INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16 = INTERFACE_GQA_RAGGED_PREFILL.but(
    inputs={
        "q": "float16[total_q, num_qo_heads, head_dim]",
        "k": "float16[total_kv, num_kv_heads, head_dim]",
        "v": "float16[total_kv, num_kv_heads, head_dim]",
    },
    outputs={"output": "float16[total_q, num_qo_heads, head_dim]"},
)
INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK = INTERFACE_GQA_RAGGED_PREFILL.but(
    inputs={
        "v": "bfloat16[total_kv, num_kv_heads, head_dim]",
        "sinks": "float32[num_qo_heads]",
    },
)

# ---- the tests


class GqaRaggedTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of gqa_ragged share."""

    op_type = "gqa_ragged"
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
# (4) the kernel's ALiBi grows with a key's place, where run()'s falls with its distance
# from the query.
# (5) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (6) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (7) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (8) a factor or an offset of 7.6e-06 is allowed.
# (9) the 256 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 800, and tensor
# cores add them in float32 by truncation.
# (10) a thread of fa3 adds a quarter of a row's exponentials in float32, one after
# another.
# (11) a factor or an offset of 3.8e-06 is allowed.
# (12) cuda-cores caps a logit by tanh.approx.f32, off by 2^-11 of itself.
# (13) fa3 caps a logit by tanh.approx.f32, whose relative error PTX's manual bounds by
# 2^-11.
# (14) cuda-cores caps a logit by tanh.approx.f32, whose relative error PTX's manual
# bounds by 2^-11.
# (15) one rounding to float16.
# (16) the kernel multiplies weights in float16, off by 2^-11/sqrt(3)/1.44 = 2e-4 of
# themselves, root mean square.
# (17) fa2 sums the probabilities after rounding them to float16.


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. ALiBi adds slope * (j - p) to the scaled
# logit of the key at j for a query at p, which is 0 for its own key. With n the largest
# power of 2 up to the number of query heads, slope is 2 ** (-8 * (h + 1) / n) for head
# h < n, and 2 ** (-4 * (2 * (h - n) + 1) / n) for the others. A query that sees no key
# gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     flashinfer/cuda-cores             1e-05     0.001    1e-07  (4)
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (6)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (9)
#   lse     flashinfer/fa3 of some sizes      1e-05     1e-05    1e-07  (10) (11)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
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


class GqaRaggedPrefillCausalAlibiBase(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_alibi)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"head_dim": 128}
    constants = ("alibi",)
    ALIBI = True  # "alibi" in the name

# model:mpt-7b, model:bloom-7b1
class TestGqaRaggedPrefillCausalAlibiH32Kv32D128(GqaRaggedPrefillCausalAlibiBase):
    name = "gqa_ragged_prefill_causal_alibi_h32_kv32_d128"
    axes = {"num_qo_heads": 32, "num_kv_heads": 32}
    sha256 = "1a1059571967771aa26d22cc98043891d28201a046ceb6077269270c9894e28b"

class TestGqaRaggedPrefillCausalAlibiH40Kv40D128(GqaRaggedPrefillCausalAlibiBase):
    name = "gqa_ragged_prefill_causal_alibi_h40_kv40_d128"  # model:baichuan2-13b
    axes = {"num_qo_heads": 40, "num_kv_heads": 40}
    sha256 = "de7b8648fb0f31218ab87b8de900bdc749e4ea264682998f2800a6289169f11a"


# Grouped-query attention over contiguous keys and values, prefill: 48 query heads share
# 8 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A scaled logit l becomes 30 * tanh(l / 30), before mask and
# softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, model:grok-1,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances:
#   output  source                           rtol      atol     NMSE      reason
#   output  oracle                           0.00391   1e-05*   1e-05     (1)
#   output  flashinfer/fa2, fa3              0.01      0.008    2e-05     (2)
#   output  flashinfer/fa2-plain, fa3-plain  0.01      0.008    2e-05     (3)
#   output  flashinfer/cuda-cores            0.01      0.008    2e-05     (12)
#   output  flashinfer                       0.01      0.008    2e-05     default
#   lse     oracle                           2.38e-07  1e-05*   1e-11     (5)
#   lse     metamorphic:cpu                  4.77e-07  2e-05*   1e-07     (6)
#   lse     metamorphic:strided              4.77e-07  2e-05*   1e-07     (6)
#   lse     flashinfer/fa2, fa2-plain        0         0.00562  1e-06     (7) (8)
#   lse     flashinfer/fa3                   0.000488  1e-05    2.38e-07  (13)
#   lse     flashinfer/cuda-cores            0.000488  1e-05    2.38e-07  (14)
#   lse     flashinfer                       1e-05     1e-05    1e-07     default
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


class TestGqaRaggedPrefillCausalCap30H48Kv8D128(GqaRaggedTests):
    name = "gqa_ragged_prefill_causal_cap30_h48_kv8_d128"
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap30_h48_kv8)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128}
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 30  # "cap30" in the name
    sha256 = "4e0b22ab4569f9f8a0060f3005cbed0ceb937b73027dc378378159883974cf02"


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. A scaled logit l becomes 50 * tanh(l /
# 50), before mask and softmax. A query that sees no key gives output 0 and lse -inf.
# lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_ragged_prefill_causal_cap30_h48_kv8.
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


class GqaRaggedPrefillCausalCap50Base(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    constants = ("logits_soft_cap",)
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaRaggedPrefillCausalCap50H16Kv8D256(GqaRaggedPrefillCausalCap50Base):
    name = "gqa_ragged_prefill_causal_cap50_h16_kv8_d256"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "c1fd0bf4cf8a879a6bf6ccf31edbc1bb915fceb7c3e629d3c7f9238c4347c454"

class TestGqaRaggedPrefillCausalCap50H32Kv16D128(GqaRaggedPrefillCausalCap50Base):
    name = "gqa_ragged_prefill_causal_cap50_h32_kv16_d128"  # model:gemma-2-27b
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "83c485a59d944b0f5bc0225c8f712c277813d1849abb872fde89966a1b1134a8"


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. A query at key p sees keys p - 4095 ...
# p, a sliding window of 4096. A scaled logit l becomes 50 * tanh(l / 50), before mask
# and softmax. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances: those of reference_gqa_ragged_prefill_causal_cap30_h48_kv8.
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


class GqaRaggedPrefillCausalCap50W4095Base(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_cap50_w4095)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    constants = ("window_left", "logits_soft_cap")
    WINDOW_LEFT = 4095  # "w4095" in the name
    LOGITS_SOFT_CAP = 50  # "cap50" in the name

class TestGqaRaggedPrefillCausalCap50W4095H16Kv8D256(
    GqaRaggedPrefillCausalCap50W4095Base
):
    name = "gqa_ragged_prefill_causal_cap50_w4095_h16_kv8_d256"  # model:gemma-2-9b
    axes = {"num_qo_heads": 16, "num_kv_heads": 8, "head_dim": 256}
    sha256 = "9af2d54e0e0970430bf5d43d7414ff3f643526c481bd7232fff0b12d65f266ab"

class TestGqaRaggedPrefillCausalCap50W4095H32Kv16D128(
    GqaRaggedPrefillCausalCap50W4095Base
):
    name = "gqa_ragged_prefill_causal_cap50_w4095_h32_kv16_d128"  # model:gemma-2-27b
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "d32647ed0714ba29f6f18807dc76b63922c367b3576a7a8f4f650c760a213813"


# A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper
# Tolerances of gqa_ragged_prefill_causal_fp16_h32_kv32_d128 and 1 more:
#   output  source                            rtol      atol      NMSE     reason
#   output  oracle in extreme-logits          0.000488  0.0002    2e-07    (15)
#   output  oracle                            0.000488  1e-05*    1.6e-07  (15)
#   output  flashinfer/fa2, fa3               0.00125   0.001     4e-07    (16)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008     2e-05    (3)
#   output  flashinfer                        0.001     0.001     1e-06    default
#   lse     flashinfer/fa2                    0         0.000704  1e-07    (17) (8)
#   lse     oracle                            2.38e-07  1e-05*    1e-11    (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*    1e-07    (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*    1e-07    (6)
#   lse     flashinfer/fa2-plain              0         0.00562   1e-06    (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019   1e-07    (9)
#   lse     flashinfer/fa3 of some sizes      1e-05     1e-05     1e-07    (10) (11)
#   lse     flashinfer                        1e-05     1e-05     1e-07    default
# Tolerances of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (5)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (6)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (6)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (7) (8)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (9)
#   lse     flashinfer/fa3 of some sizes      1e-05     1e-05    1e-07  (10) (11)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
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


class GqaRaggedPrefillCausalBase(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal)

# The next 2: Grouped-query attention over contiguous keys and values, prefill: 32 query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. Queries, keys, values and output are
# float16.
class TestGqaRaggedPrefillCausalFp16H32Kv32D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_fp16_h32_kv32_d128"  # model:llama-2-7b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 32, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "a071948168078a056b04973475046f9e29f1d3c05302c249da79479e46c9fcb0"

class TestGqaRaggedPrefillCausalFp16H32Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_fp16_h32_kv8_d128"  # model:llama-3.1-8b-awq, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_FP16
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    constants = ("fp16",)
    FP16 = True  # "fp16" in the name
    sha256 = "b09a64d4110561def46d535acbb3f5433fa61e8b152acfe0fae8fab262e24027"

# The next 15: Grouped-query attention over contiguous keys and values, prefill:
# num_qo_heads query heads share num_kv_heads KV heads. The mask is causal and aligned
# bottom-right: query i of q_len stands at key kv_len - q_len + i.
class TestGqaRaggedPrefillCausalH12Kv1D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h12_kv1_d128"  # model:glm-4.6, tp:8
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 12, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "9b2437f4d37c85ebeb5ca65d7c0329ae026dfc18af95e61f049d70f8abb1ebdc"

class TestGqaRaggedPrefillCausalH16Kv1D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h16_kv1_d128"  # model:qwen3-235b-a22b, tp:4
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "99bd430f43614e33707398211dd4ae783fd5e1483e29a0fa9b120cb76df5b532"

class TestGqaRaggedPrefillCausalH16Kv2D256(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h16_kv2_d256"  # model:qwen3-next-80b-a3b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 256}
    sha256 = "98055689529d705fcecb40da4a33421a36ddd6a5a69af13a410ffe991ba10e8d"

class TestGqaRaggedPrefillCausalH16Kv2D512(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h16_kv2_d512"  # model:gemma-4-26b-a4b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 512}
    sha256 = "ce7a1d4c2057bdaad8434774e3eb63c0f63ce8d35ae19626426b009a29cfea6d"

class TestGqaRaggedPrefillCausalH16Kv4D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h16_kv4_d128"  # model:smollm3-3b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "cbdb17eec8a490d24f387ea69f8bfd91a1ff99740979ab0e6142f58a7dc6b590"

class TestGqaRaggedPrefillCausalH24Kv2D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h24_kv2_d128"  # model:glm-4.6, tp:4
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 24, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "9d1380f0a0a9255ec3714a563dd607efaddd4051a0b1bf257b084e104f2fdf7f"

class TestGqaRaggedPrefillCausalH28Kv4D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h28_kv4_d128"  # model:qwen2.5-7b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 28, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "5898d92208dd85a31797ceb9baebab3fd1255072750b1ec986eb112dcafcf369"

class TestGqaRaggedPrefillCausalH32Kv4D512(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h32_kv4_d512"  # model:gemma-4-31b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 512}
    sha256 = "8a9509226187795c9e15ccbe4ae6c85022ac5525a1b2200f335555ee061594b3"

class TestGqaRaggedPrefillCausalH32Kv8D64(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h32_kv8_d64"  # model:llama-3.2-1b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 64}
    sha256 = "30057e7c96c0315eedee1e1bc5231575cf1eb27dbece5340b2ee5ff2194143fd"

# model:qwen3-14b, model:llama-4-scout, tp:1
class TestGqaRaggedPrefillCausalH40Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h40_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 40, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "473d1eb00f6e507c8f10bcd3b1b316b1c1a799732501da0949e7731ef15b9918"

# model:minimax-m2, model:mixtral-8x22b, tp:1
class TestGqaRaggedPrefillCausalH48Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h48_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 48, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "f83b11c7ec386e91567f04a39da0ede9c3afb66d7c65a8775701b58e57fd076e"

class TestGqaRaggedPrefillCausalH64Kv4D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h64_kv4_d128"  # model:qwen3-235b-a22b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 64, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "5ee0c7f80922262ed10c58d96feccd2b5ebf26d3abea5be98147de4e3d21335d"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-32b, tp:1
class TestGqaRaggedPrefillCausalH64Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h64_kv8_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 64, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "6a45a6f02105b328ed4b76f2426f8862df50f0d2d01b19c0d88271142232c778"

# model:llama-3.1-70b, model:llama-3.3-70b, model:qwen3-235b-a22b, tp:8
class TestGqaRaggedPrefillCausalH8Kv1D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h8_kv1_d128"
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "8805ef2d4eaf5dd0c6f7fa6139cbb0dcb5b144bba70c3844cd63e67f5259161f"

class TestGqaRaggedPrefillCausalH96Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h96_kv8_d128"  # model:glm-4.6, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 96, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "3cca15873b8a40741710c22d2082a5db89059820921108f267fec79b77c0f7c4"

# The next 9: Grouped-query attention over contiguous keys and values, causal prefill:
# num_qo_heads query heads share num_kv_heads KV heads. The mask is causal and aligned
# bottom-right: query i of q_len sees keys 0 ... kv_len - q_len + i.
class TestGqaRaggedPrefillCausalH16Kv2D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h16_kv2_d128"  # model:qwen3-32b, tp:4
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 128}
    sha256 = "b9f27fa5991a8a7a5af83d4e91fe48da80039b7091574495dfcd748d1c890512"

class TestGqaRaggedPrefillCausalH20Kv4D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h20_kv4_d128"  # model:qwen3-14b, tp:2
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 20, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "25e45d2baf72f497a433a79678ba98438d927bbf42276db82c5f1d57166048e8"

class TestGqaRaggedPrefillCausalH24Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h24_kv8_d128"  # model:llama-3.2-3b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 24, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "9db0b3dd56db536f49a4ff6bf080d92a9db1917ec3180366a57a2053bf833579"

class TestGqaRaggedPrefillCausalH32Kv16D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h32_kv16_d128"  # model:gemma-3-27b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 16, "head_dim": 128}
    sha256 = "ba90605b99438956c19e211d6cd0d9580af3f60fd560b288ed1be2cd198e6922"

class TestGqaRaggedPrefillCausalH32Kv4D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h32_kv4_d128"  # model:qwen3-30b-a3b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "738a9c59d0f973cf69089b4dffbb2d7908f266a2d8a18da88eece4cebab205f2"

class TestGqaRaggedPrefillCausalH32Kv8D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h32_kv8_d128"  # model:llama-3.1-8b, tp:1
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "6a502eb8220006c3e87f33b34707a682ae02dee03dcf41cb5b12464b1622efa0"

class TestGqaRaggedPrefillCausalH5Kv1D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h5_kv1_d128"  # model:llama-4-scout-17b-16e, tp:8
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 5, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "1700e15037a4142069d1c24dea63d054e98c65f5a71ec4e929c4082ae1b6eb2c"

class TestGqaRaggedPrefillCausalH6Kv1D128(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h6_kv1_d128"  # model:minimax-m2, tp:8
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 6, "num_kv_heads": 1, "head_dim": 128}
    sha256 = "c2d52cf3fac98208e68a18779b245ecabb2c7cc7823487caa0d26fa11206a249"

class TestGqaRaggedPrefillCausalH8Kv1D256(GqaRaggedPrefillCausalBase):
    name = "gqa_ragged_prefill_causal_h8_kv1_d256"  # model:qwen3-next-80b-a3b, tp:2
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 8, "num_kv_heads": 1, "head_dim": 256}
    sha256 = "cc634265972731c2657d38904c4cb11088c79ec2d1be0a8fd4b3cf18ae2d614b"


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. A head's sink is one more logit, natural
# and unscaled, whose value is zero: it adds to the sum of exponentials, and to lse. A
# query that sees no key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper
# Tolerances: those of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more.
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


class GqaRaggedPrefillCausalSinkBase(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_sink)
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK
    axes = {"head_dim": 64}

class TestGqaRaggedPrefillCausalSinkH16Kv2D64(GqaRaggedPrefillCausalSinkBase):
    name = "gqa_ragged_prefill_causal_sink_h16_kv2_d64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "8bc9df95123a9dcba91045f0c9db0a282ef181c6ec5455723bba02040713199c"

class TestGqaRaggedPrefillCausalSinkH64Kv8D64(GqaRaggedPrefillCausalSinkBase):
    name = "gqa_ragged_prefill_causal_sink_h64_kv8_d64"  # model:gpt-oss-20b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "5c74319984317e7e4ae9ab9e058ba06523cb901ebd9df873c1a2949bbb4a5c69"

class TestGqaRaggedPrefillCausalSinkH8Kv1D64(GqaRaggedPrefillCausalSinkBase):
    name = "gqa_ragged_prefill_causal_sink_h8_kv1_d64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "ea6c7e4e8e876d8446cea16eec4af98b77220223dc6be7e0eee7db9fd9e9af63"


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. The mask is causal and aligned bottom-right: query
# i of q_len stands at key kv_len - q_len + i. A query at key p sees keys p - 127 ... p,
# a sliding window of 128. A head's sink is one more logit, natural and unscaled, whose
# value is zero: it adds to the sum of exponentials, and to lse. A query that sees no
# key gives output 0 and the lse of its sink. lse is base 2.
# stage:prefill, model:gpt-oss-120b,
# fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper
# Tolerances: those of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more.
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


class GqaRaggedPrefillCausalSinkW127Base(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_sink_w127)
    interface = INTERFACE_GQA_RAGGED_PREFILL_CAUSAL_SINK
    axes = {"head_dim": 64}
    constants = ("window_left",)
    WINDOW_LEFT = 127  # "w127" in the name

class TestGqaRaggedPrefillCausalSinkW127H16Kv2D64(GqaRaggedPrefillCausalSinkW127Base):
    name = "gqa_ragged_prefill_causal_sink_w127_h16_kv2_d64"  # tp:4
    axes = {"num_qo_heads": 16, "num_kv_heads": 2}
    sha256 = "7beea02bd94124be73d2844082f140be9b9ac9f27e6ecdab93f864188c4cf0fd"

class TestGqaRaggedPrefillCausalSinkW127H64Kv8D64(GqaRaggedPrefillCausalSinkW127Base):
    name = "gqa_ragged_prefill_causal_sink_w127_h64_kv8_d64"  # model:gpt-oss-20b, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 8}
    sha256 = "674e2db8ef86470b2ab1f7432c11879140eda68ca9b729e1cd39216e5ed288ac"

class TestGqaRaggedPrefillCausalSinkW127H8Kv1D64(GqaRaggedPrefillCausalSinkW127Base):
    name = "gqa_ragged_prefill_causal_sink_w127_h8_kv1_d64"  # tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 1}
    sha256 = "44a2b75e6abb022cd1c35f88d0f4e01c61bdd11e2057ee2fe33c627db0b6220c"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# 16 KV heads. The mask is causal and aligned bottom-right: query i of q_len stands at
# key kv_len - q_len + i. A query at key p sees keys p - 1023 ... p, a sliding window of
# 1024. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances: those of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more.
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


class GqaRaggedPrefillCausalW1023H32Kv16Base(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w1023_h32_kv16)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "num_kv_heads": 16}
    constants = ("window_left",)
    WINDOW_LEFT = 1023  # "w1023" in the name

class TestGqaRaggedPrefillCausalW1023H32Kv16D128(
    GqaRaggedPrefillCausalW1023H32Kv16Base
):
    name = "gqa_ragged_prefill_causal_w1023_h32_kv16_d128"  # model:gemma-3-27b
    axes = {"head_dim": 128}
    sha256 = "d8819765ff5345faecaeb495e6c814f8d4791b1a4c7d1b46fd136c0aa8397abb"

class TestGqaRaggedPrefillCausalW1023H32Kv16D256(
    GqaRaggedPrefillCausalW1023H32Kv16Base
):
    name = "gqa_ragged_prefill_causal_w1023_h32_kv16_d256"  # model:gemma-4-31b
    axes = {"head_dim": 256}
    sha256 = "b92fedc3c3e45e60ad36166352440d0f074780329b54030f5caeb417839fef29"


# Grouped-query attention over contiguous keys and values, prefill: 32 query heads share
# num_kv_heads KV heads. The mask is causal and aligned bottom-right: query i of q_len
# stands at key kv_len - q_len + i. A query at key p sees keys p - 4095 ... p, a sliding
# window of 4096. A query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances: those of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more.
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


class GqaRaggedPrefillCausalW4095H32Base(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_causal_w4095_h32)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    axes = {"num_qo_heads": 32, "head_dim": 128}
    constants = ("window_left",)
    WINDOW_LEFT = 4095  # "w4095" in the name

class TestGqaRaggedPrefillCausalW4095H32Kv32D128(GqaRaggedPrefillCausalW4095H32Base):
    name = "gqa_ragged_prefill_causal_w4095_h32_kv32_d128"  # model:olmo-3-7b
    axes = {"num_kv_heads": 32}
    sha256 = "4503df02e74b918267c1d9e9dfa7c3420588e4284cb47bcbd9d31c68a3333806"

class TestGqaRaggedPrefillCausalW4095H32Kv8D128(GqaRaggedPrefillCausalW4095H32Base):
    name = "gqa_ragged_prefill_causal_w4095_h32_kv8_d128"  # model:mistral-7b-v0.1
    axes = {"num_kv_heads": 8}
    sha256 = "3428610c08a6cc2a03496d0b6e7d3f45a8c523cf8f9895a47db53a7bb11e88ac"


# Grouped-query attention over contiguous keys and values, prefill: num_qo_heads query
# heads share num_kv_heads KV heads. There is no mask: every query sees all keys. A
# query that sees no key gives output 0 and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper, tp:1
# Tolerances: those of gqa_ragged_prefill_causal_h12_kv1_d128 and 23 more.
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


class GqaRaggedPrefillNoncausalBase(GqaRaggedTests):
    reference = staticmethod(reference_gqa_ragged_prefill_noncausal)
    interface = INTERFACE_GQA_RAGGED_PREFILL
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name

class TestGqaRaggedPrefillNoncausalH16Kv16D64(GqaRaggedPrefillNoncausalBase):
    name = "gqa_ragged_prefill_noncausal_h16_kv16_d64"  # model:bge-large-en-v1.5
    axes = {"num_qo_heads": 16, "num_kv_heads": 16, "head_dim": 64}
    sha256 = "771beb93cf4a4308262adb5f5ea915648f7fce67593b330f0a40e740fab5f098"

class TestGqaRaggedPrefillNoncausalH20Kv20D64(GqaRaggedPrefillNoncausalBase):
    name = "gqa_ragged_prefill_noncausal_h20_kv20_d64"  # model:whisper-large-v3
    axes = {"num_qo_heads": 20, "num_kv_heads": 20, "head_dim": 64}
    sha256 = "a731c15e63c431bfb8dbb00248f521630ff010d2c186c278cac053c89b793dad"

class TestGqaRaggedPrefillNoncausalH32Kv8D128(GqaRaggedPrefillNoncausalBase):
    name = "gqa_ragged_prefill_noncausal_h32_kv8_d128"  # model:llama-3.2-11b-vision
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "68fc50f5c8d44f68239031488bf4809b7bae9ee29a0df100296c2c13eb648c4e"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
