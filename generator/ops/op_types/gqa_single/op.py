"""gqa_single: grouped-query attention of one sequence over contiguous keys and values.

Prefill, which has the axis q_len, has several queries, under a causal mask aligned
bottom-right or, where the name says `noncausal`, none. Decode has one. LSE is base 2.
"""

from __future__ import annotations

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
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
