"""Reference tests of op_type mla_ragged.

Rendered: don't edit. `gen-tests --op-type mla_ragged` renders this file anew.

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
from generator.ops.attention.flashinfer import FA2, FA3, ragged_prefill
from generator.ops.attention.oracle import oracle_ragged, rows_with_a_key
from generator.ops.attention.relations import attention_relations
from generator.ops.attention.tolerances import LSE_OF_MANY_KEYS, attention_tolerances
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.attention.oracle
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.attention.relations

TOLERANCES = (*attention_tolerances(products=192, total=740), LSE_OF_MANY_KEYS)


def cases(definition: Definition) -> list[Case]:
    """Return the prefill cases over contiguous keys."""
    return ragged_cases(definition)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `ragged_inputs` for their shapes."""
    axes = definition.axes
    return ragged_inputs(definition, case, stream, axes["qk_dim"], axes["vo_dim"])


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention in float64.

    output [total_q, num_qo_heads, vo_dim], LSE [total_q, num_qo_heads].
    """
    return oracle_ragged(inputs)


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see at least one key: bool [total_q]."""
    return rows_with_a_key(inputs)


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3, both generations of the prefill kernel."""
    return (FA2, FA3)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's ragged prefill."""
    axes = definition.axes
    return ragged_prefill(definition, inputs, backend, axes["qk_dim"], axes["vo_dim"])


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=attention_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_MLA_RAGGED_PREFILL_CAUSAL = Interface(
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
    constraints=("total_q == qo_indptr[-1].item()", "total_kv == kv_indptr[-1].item()"),
)

# ---- the tests


class MlaRaggedTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of mla_ragged share."""

    op_type = "mla_ragged"
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
# (4) the float32 sum of a logit's 576 products is off by sqrt(576/2)·0.4·2^-24 of their
# deviation of 2, 8.1e-7 root mean square and 4.9e-6 at most, which is 6 times that,
# 7e-6 in base 2.
# (5) a CPU and a GPU add the products of a logit in different orders, as a GPU does for
# rows that are views.
# (6) fa2 sums the probabilities after rounding them to bfloat16, whose unit roundoff is
# 2^-8.
# (7) a factor or an offset of 7.6e-06 is allowed.
# (8) the 192 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 740, and tensor
# cores add them in float32 by truncation.
# (9) a thread of fa3 adds a quarter of a row's exponentials in float32, one after
# another.
# (10) a factor or an offset of 3.8e-06 is allowed.


# Multi-head latent attention over contiguous keys and values, causal prefill, not
# absorbed: each of the num_qo_heads query heads has a key and a value head of its own,
# and values are shorter than keys. The mask is causal and aligned bottom-right: query i
# of q_len sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0
# and lse -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.BatchPrefillWithRaggedKVCacheWrapper
# Tolerances:
#   output  source                            rtol      atol     NMSE   reason
#   output  oracle                            0.00391   1e-05*   1e-05  (1)
#   output  flashinfer/fa2, fa3               0.01      0.008    2e-05  (2)
#   output  flashinfer/fa2-plain, fa3-plain   0.01      0.008    2e-05  (3)
#   output  flashinfer                        0.01      0.008    2e-05  default
#   lse     oracle                            2.38e-07  1e-05*   1e-11  (4)
#   lse     metamorphic:cpu                   4.77e-07  2e-05*   1e-07  (5)
#   lse     metamorphic:strided               4.77e-07  2e-05*   1e-07  (5)
#   lse     flashinfer/fa2, fa2-plain         0         0.00562  1e-06  (6) (7)
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00018  1e-07  (8)
#   lse     flashinfer/fa3 of some sizes      1e-05     1e-05    1e-07  (9) (10)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
def reference_mla_ragged_prefill_causal():
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


class MlaRaggedPrefillCausalBase(MlaRaggedTests):
    reference = staticmethod(reference_mla_ragged_prefill_causal)
    interface = INTERFACE_MLA_RAGGED_PREFILL_CAUSAL
    axes = {"qk_dim": 192, "vo_dim": 128}

# model:deepseek-v3, model:deepseek-r1, tp:1
class TestMlaRaggedPrefillCausalH128Qk192Vo128(MlaRaggedPrefillCausalBase):
    name = "mla_ragged_prefill_causal_h128_qk192_vo128"
    axes = {"num_qo_heads": 128, "num_kv_heads": 128}
    sha256 = "70ec06ed6925a7d1b4f776554aa60f407b813871d52de9dd7690571cdccb196b"

# model:deepseek-v3, model:deepseek-r1, tp:8
class TestMlaRaggedPrefillCausalH16Qk192Vo128(MlaRaggedPrefillCausalBase):
    name = "mla_ragged_prefill_causal_h16_qk192_vo128"
    axes = {"num_qo_heads": 16, "num_kv_heads": 16}
    sha256 = "3b779a3d7aa3cdc18e6a803a50dc780eb79643c021dba2737f4e94eb9a9fbb86"

class TestMlaRaggedPrefillCausalH64Qk192Vo128(MlaRaggedPrefillCausalBase):
    name = "mla_ragged_prefill_causal_h64_qk192_vo128"  # model:kimi-k2, tp:1
    axes = {"num_qo_heads": 64, "num_kv_heads": 64}
    sha256 = "8bc2d7af95cf71e804cb977207f10b105b775c1d1310e48b4a07a9ff81671b63"

class TestMlaRaggedPrefillCausalH8Qk192Vo128(MlaRaggedPrefillCausalBase):
    name = "mla_ragged_prefill_causal_h8_qk192_vo128"  # model:kimi-k2, tp:8
    axes = {"num_qo_heads": 8, "num_kv_heads": 8}
    sha256 = "5f4f085b15df0ac7474624245e09bcc7d6c9b63194347cfcb5ae72174f0d9d4a"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
