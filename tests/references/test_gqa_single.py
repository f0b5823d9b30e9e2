"""Reference tests of op_type gqa_single.

Rendered: don't edit. `gen-tests --op-type gqa_single` renders this file anew.

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

from generator.ops.attention.cases import logit_params, scale_of, with_far_factors
from generator.ops.attention.flashinfer import (
    FA2,
    FA3,
    skip_more_queries,
    skip_unmasked,
)
from generator.ops.attention.oracle import oracle_ragged, sees_a_key
from generator.ops.attention.tolerances import attention_tolerances
from generator.ops.attention.variant import variant_of
from generator.ops.op_types.gqa_single.relations import single_relations
from generator.ops.paging import indptr
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.attention.oracle, generator.ops.attention.variant,
# generator.ops.paging
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.op_types.gqa_single.relations

TOLERANCES = attention_tolerances(products=256, total=800)
_CUDA_CORES, _TENSOR_CORES = Backend("cuda-cores"), Backend("fa2", min_sm=80)
# head ratios that the kernel without tensor cores is compiled for
_CUDA_CORE_RATIOS = (1, 2, 4, 8)


def cases(definition: Definition) -> list[Case]:
    """Return one token, lengths around a block of 64 keys, more queries than keys."""
    several = _has_rows(definition)
    shapes = {
        "single-token": ("small", 1, 1),
        "below-a-block": ("small", 5, 63),
        "whole-blocks": ("small", 64, 64),
        "above-a-block": ("small", 33, 65),
        "more-queries-than-keys": ("small", 70, 3),
        "extreme-logits": ("small", 9, 70),
        "other-scale": ("small", 20, 33),
        "whole-prompt": ("medium", 300, 300),
        "later-queries": ("medium", 16, 1500),
        "past-limits": (LIMITS, 523, 40),
        "many-keys": (LIMITS, 2, 66_000),
        "long": ("large", 1000, 4096),
    }
    usual = [
        Case(
            name,
            size,
            ({"q_len": q_len} if several else {}) | {"kv_len": kv_len},
            logit_params(name),
        )
        for name, (size, q_len, kv_len) in shapes.items()
    ]
    return with_far_factors(definition, usual)


def _has_rows(definition: Definition) -> bool:
    return "q_len" in (definition.interface.input_specs["q"].shape or ())


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs.

    q bfloat16 [(q_len,) num_qo_heads, head_dim], k and v bfloat16 [kv_len,
    num_kv_heads, head_dim], sm_scale float.
    """
    axes = {**definition.axes, **case.axes}
    stds = {"q": case.params["q_std"], "k": 1.0, "v": 1.0}
    inputs: dict[str, Any] = {"sm_scale": scale_of(case, axes["head_dim"])}
    for name, std in stds.items():
        shape = [axes[a] for a in definition.interface.input_specs[name].shape or ()]
        inputs[name] = stream.child(name).values(shape, std, torch.bfloat16)
    return {name: inputs[name] for name in definition.interface.inputs}


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return output, shaped as q, and LSE in float64: a ragged batch of one sequence."""
    q = inputs["q"] if _has_rows(definition) else inputs["q"][None]
    bounds = {"qo_indptr": indptr([len(q)]), "kv_indptr": indptr([len(inputs["k"])])}
    output, lse = oracle_ragged({**inputs, **bounds, "q": q}, variant_of(definition))
    return (output, lse) if _has_rows(definition) else (output[0], lse[0])


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the queries that see a key, bool [q_len]; of a decode all its heads."""
    q_len = len(inputs["q"]) if _has_rows(definition) else 1
    seen = sees_a_key(q_len, len(inputs["k"]), variant_of(definition))
    return seen if _has_rows(definition) else seen.expand(len(inputs["q"]))


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return fa2 and fa3 of prefill; of decode the kernels for CUDA and tensor cores."""
    if _has_rows(definition):
        return FA2, FA3
    ratio = definition.axes["num_qo_heads"] // definition.axes["num_kv_heads"]
    has_cuda_cores = ratio in _CUDA_CORE_RATIOS
    return (_CUDA_CORES, _TENSOR_CORES) if has_cuda_cores else (_TENSOR_CORES,)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return bfloat16 output and float32 LSE of FlashInfer's kernels for one sequence."""
    import flashinfer

    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    options = {"sm_scale": inputs["sm_scale"], "return_lse": True}
    if backend != _CUDA_CORES.name:
        skip_unmasked(definition, inputs, backend)
    if _has_rows(definition):
        causal = variant_of(definition).causal
        if causal and backend == "fa2":
            skip_more_queries("fa2", len(q), len(k))
        return flashinfer.single_prefill_with_kv_cache(
            q, k, v, causal=causal, backend=backend, **options
        )
    return flashinfer.single_decode_with_kv_cache(
        q, k, v, use_tensor_cores=backend != _CUDA_CORES.name, **options
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=single_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)


# ---- the interfaces

INTERFACE_GQA_SINGLE_DECODE = Interface(
    inputs={
        "q": "bfloat16[num_qo_heads, head_dim]",
        "k": "bfloat16[kv_len, num_kv_heads, head_dim]",
        "v": "bfloat16[kv_len, num_kv_heads, head_dim]",
        "sm_scale": "float32",
    },
    outputs={
        "output": "bfloat16[num_qo_heads, head_dim]",
        "lse": "float32[num_qo_heads]",
    },
    constraints=("kv_len >= 1",),
)
INTERFACE_GQA_SINGLE_PREFILL = INTERFACE_GQA_SINGLE_DECODE.but(
    inputs={"q": "bfloat16[q_len, num_qo_heads, head_dim]"},
    outputs={
        "output": "bfloat16[q_len, num_qo_heads, head_dim]",
        "lse": "float32[q_len, num_qo_heads]",
    },
)

# ---- the tests


class GqaSingleTests(
    GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic
):
    """What the tests of gqa_single share."""

    op_type = "gqa_single"
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
# (8) the 256 products of a logit cancel from Σ|q·k|·sm_scale·log2(e) = 800, and tensor
# cores add them in float32 by truncation.


# Grouped-query attention of one sequence, decode: num_qo_heads query heads share
# num_kv_heads KV heads. The one query sees all keys. lse is base 2.
# stage:decode, fi_api:flashinfer.decode.single_decode_with_kv_cache, tp:1
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
#   lse     flashinfer/fa3 in extreme-logits  1e-05     0.00019  1e-07  (8)
#   lse     flashinfer                        1e-05     1e-05    1e-07  default
def reference_gqa_single_decode():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[1]
        group_size = num_qo_heads // num_kv_heads

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q.float().reshape(num_kv_heads, group_size, head_dim)
        logits = torch.einsum("hgd,khd->hgk", queries, k.float()) * sm_scale
        attended = torch.einsum("hgk,khd->hgd", logits.softmax(dim=-1), v.float())
        # Base 2: log2 of the sum of exponentials.
        lse = logits.logsumexp(dim=-1).flatten() / math.log(2)
        return attended.flatten(0, 1).to(q.dtype), lse

    return run


class GqaSingleDecodeBase(GqaSingleTests):
    reference = staticmethod(reference_gqa_single_decode)
    interface = INTERFACE_GQA_SINGLE_DECODE

class TestGqaSingleDecodeH16Kv2D256(GqaSingleDecodeBase):
    name = "gqa_single_decode_h16_kv2_d256"  # model:qwen3-next-80b-a3b
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 256}
    sha256 = "d07adfacf215a3a45371ccaed0d7bb833bb55e57fc7471876f3574e73d6ff1f9"

class TestGqaSingleDecodeH32Kv4D128(GqaSingleDecodeBase):
    name = "gqa_single_decode_h32_kv4_d128"  # model:qwen3-30b-a3b
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "7f0d09cb4d77312d0d6c1f19082262d463043deb53a90129a95a64a7f79ea0fb"

class TestGqaSingleDecodeH32Kv8D128(GqaSingleDecodeBase):
    name = "gqa_single_decode_h32_kv8_d128"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "7ca1694464e9574166c23dc6c4285dcb317118a16506130dfad7e3e8c914c387"


# Grouped-query attention of one sequence, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. The mask is causal and aligned bottom-right: query i of q_len
# sees keys 0 ... kv_len - q_len + i. A query that sees no key gives output 0 and lse
# -inf. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.single_prefill_with_kv_cache, tp:1
# Tolerances: those of reference_gqa_single_decode.
def reference_gqa_single_prefill_causal():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q_len, num_qo_heads, head_dim = q.shape
        kv_len, num_kv_heads, _ = k.shape
        group_size = num_qo_heads // num_kv_heads

        # What a query that sees no key returns.
        output = torch.zeros_like(q)
        lse = torch.full(q.shape[:2], -math.inf, dtype=torch.float32, device=q.device)

        # The last query stands at the last key; queries before the first key see none.
        first = max(q_len - kv_len, 0)
        query_positions = torch.arange(first, q_len, device=q.device) + (kv_len - q_len)
        key_positions = torch.arange(kv_len, device=q.device)
        future = key_positions[None, :] > query_positions[:, None]  # [queries, kv_len]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[first:].float()
        queries = queries.reshape(-1, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
        logits.masked_fill_(future, -math.inf)
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
        output[first:] = attended.flatten(1, 2).to(q.dtype)
        # Base 2: log2 of the sum of exponentials.
        lse[first:] = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
        return output, lse

    return run


class GqaSinglePrefillCausalBase(GqaSingleTests):
    reference = staticmethod(reference_gqa_single_prefill_causal)
    interface = INTERFACE_GQA_SINGLE_PREFILL

class TestGqaSinglePrefillCausalH16Kv2D256(GqaSinglePrefillCausalBase):
    name = "gqa_single_prefill_causal_h16_kv2_d256"  # model:qwen3-next-80b-a3b
    axes = {"num_qo_heads": 16, "num_kv_heads": 2, "head_dim": 256}
    sha256 = "6f7936ab6f2c14c5a4e39fab8b444adf57c498baa2e7f5d19c548368073959e1"

class TestGqaSinglePrefillCausalH32Kv4D128(GqaSinglePrefillCausalBase):
    name = "gqa_single_prefill_causal_h32_kv4_d128"  # model:qwen3-30b-a3b
    axes = {"num_qo_heads": 32, "num_kv_heads": 4, "head_dim": 128}
    sha256 = "98b5bbd2507fcf94aa80de297234674abed1ad33e17c1023e2553dd253e22858"

class TestGqaSinglePrefillCausalH32Kv8D128(GqaSinglePrefillCausalBase):
    name = "gqa_single_prefill_causal_h32_kv8_d128"  # model:llama-3.1-8b
    axes = {"num_qo_heads": 32, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "bf82b04a9d0d627fe490df487982fb2ee2df038ac4d7522f22d9c6ee427d54f5"


# Grouped-query attention of one sequence, prefill: num_qo_heads query heads share
# num_kv_heads KV heads. There is no mask: every query sees all keys. lse is base 2.
# stage:prefill, fi_api:flashinfer.prefill.single_prefill_with_kv_cache, tp:1
# Tolerances: those of reference_gqa_single_decode.
def reference_gqa_single_prefill_noncausal():
    import math

    import torch


    @torch.no_grad()
    def run(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q_len, num_qo_heads, head_dim = q.shape
        num_kv_heads = k.shape[1]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        group_size = num_qo_heads // num_kv_heads
        queries = q.float().reshape(q_len, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
        # Base 2: log2 of the sum of exponentials.
        lse = logits.logsumexp(dim=-1).flatten(0, 1).T / math.log(2)
        return attended.flatten(1, 2).to(q.dtype), lse.contiguous()

    return run


class GqaSinglePrefillNoncausalBase(GqaSingleTests):
    reference = staticmethod(reference_gqa_single_prefill_noncausal)
    interface = INTERFACE_GQA_SINGLE_PREFILL
    axes = {"head_dim": 64}
    constants = ("noncausal",)
    NONCAUSAL = True  # "noncausal" in the name

class TestGqaSinglePrefillNoncausalH16Kv16D64(GqaSinglePrefillNoncausalBase):
    name = "gqa_single_prefill_noncausal_h16_kv16_d64"  # model:bge-large-en-v1.5
    axes = {"num_qo_heads": 16, "num_kv_heads": 16}
    sha256 = "55dce0620ea142e39a3896cf1acac0a44a9972dd85114303443b5552e44b79c8"

class TestGqaSinglePrefillNoncausalH20Kv20D64(GqaSinglePrefillNoncausalBase):
    name = "gqa_single_prefill_noncausal_h20_kv20_d64"  # model:whisper-large-v3
    axes = {"num_qo_heads": 20, "num_kv_heads": 20}
    sha256 = "f98285a75da9180cd6271ea8e728d65a5b132cb856933777ad7e4d8272a6d3ba"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
