"""pod: prefill on decode, attention of one prefill and of a batch of decodes.

The prefill's keys are contiguous, its mask causal and aligned bottom-right; the decodes
read pages. FlashInfer's wrapper returns no LSE.
"""

from __future__ import annotations

from typing import Any

import torch

from generator.ops.attention.cases import logit_params, with_far_factors
from generator.ops.attention.flashinfer import (
    skip_more_queries,
    skip_unmasked,
    workspace,
)
from generator.ops.attention.oracle import oracle_attention, oracle_paged
from generator.ops.attention.tolerances import growth
from generator.ops.op_types.pod.inputs import last_lengths, pod_axes, pod_inputs
from generator.ops.op_types.pod.relations import pod_relations
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

_EXACT_BUT_ROUNDED = (
    "one rounding to bfloat16: half an ulp is 2^-8 at most, and its mean square 2^-14/12 "
    "of the output's at most, 5.1e-6, taken twice. Before it, a logit, a float32 sum of "
    "128 products and of deviation 2, is off by 2e-6 at most, and so are its weights: of "
    "values 4.9 apart that is 1e-5. Logits of a larger deviation are as many times as "
    "far off: 20 times in extreme-logits"
)
_KERNEL = (
    "the kernel multiplies weights in bfloat16, off by 1.6e-3 of themselves, root mean "
    "square: with values of deviation 1 an output near 0 is off by 8e-4, of which atol "
    "is 10. Both sides round: rtol is above 2^-7"
)
TOLERANCES = tuple(
    override
    for output in ("output_p", "output_d")
    for override in (
        Override(
            output,
            Tolerance(rtol=2.0**-8, atol=1e-5, nmse=1e-5),
            _EXACT_BUT_ROUNDED,
            source="oracle",
            growth=growth,
        ),
        Override(output, Tolerance(rtol=1e-2, atol=8e-3, nmse=2e-5), _KERNEL),
    )
)
_RAGGED = tuple(Stream("pod lengths").integers(1, 512, 16))
# queries and keys of the prefill, and the keys of each decode
_LENGTHS = {
    "single-tokens": ("small", 1, 1, (1,)),
    "boundaries": ("small", 65, 65, (1, 2, 31, 63, 64, 65, 127, 128, 129)),
    "later-chunk": ("small", 16, 80, (33,)),
    "more-queries-than-keys": ("small", 70, 3, (5, 64)),
    "empty-sequence": ("small", 5, 9, (17, 0, 5, 0)),
    "extreme-logits": ("small", 9, 70, (70, 3, 200)),
    "other-scale": ("small", 20, 33, (3, 33, 64)),
    "ragged": ("medium", 200, 500, _RAGGED),
    "past-limits": (LIMITS, 259, 515, (4_200, *[961] * 63)),
    "long": ("large", 512, 4096, tuple(8 * n for n in _RAGGED)),
}


def cases(definition: Definition) -> list[Case]:
    """Return prefills and decodes of few and of many keys, and decodes of none."""
    page_size = definition.axes["page_size"]
    usual = [
        Case(
            name,
            size,
            pod_axes(q_len, kv_len, kv_lens, page_size),
            {**logit_params(name), "kv_lens": kv_lens},
        )
        for name, (size, q_len, kv_len, kv_lens) in _LENGTHS.items()
    ]
    return with_far_factors(definition, usual)


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return the inputs; see `pod_inputs` for their shapes."""
    return pod_inputs(definition, case, stream)


def oracle(
    definition: Definition, inputs: dict[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both outputs, shaped as q_p and q_d, in float64."""
    keys = inputs["k_p"], inputs["v_p"]
    output_p, _ = oracle_attention(inputs["q_p"], *keys, inputs["sm_scale"])
    caches = inputs["k_cache"], inputs["v_cache"]
    output_d, _ = oracle_paged(inputs["q_d"], *caches, inputs)
    return output_p, output_d


def defined_rows(definition: Definition, inputs: dict[str, Any]) -> torch.Tensor:
    """Return the prefill's queries that see a key: bool [q_len]."""
    q_len, kv_len = len(inputs["q_p"]), len(inputs["k_p"])
    return torch.arange(q_len) >= q_len - kv_len


def flashinfer_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the one kernel there is, of the fa2 generation."""
    return (Backend("", min_sm=80),)


def flashinfer_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return both bfloat16 outputs of FlashInfer's fused kernel."""
    import flashinfer

    q_p, scale = inputs["q_p"], inputs["sm_scale"]
    skip_more_queries("it", len(q_p), len(inputs["k_p"]))
    skip_unmasked(definition, inputs, "it")
    wrapper = flashinfer.PODWithPagedKVCacheWrapper(workspace(q_p.device), "NHD")
    axes = ("num_qo_heads", "num_kv_heads", "head_dim", "page_size")
    wrapper.plan(
        inputs["kv_indptr"],
        inputs["kv_indices"],
        last_lengths(inputs),
        *(definition.axes[axis] for axis in axes),
        q_data_type=q_p.dtype,
        kv_data_type=inputs["k_cache"].dtype,
        sm_scale=scale,
    )
    return wrapper.run(
        q_p,
        inputs["k_p"],
        inputs["v_p"],
        inputs["q_d"],
        (inputs["k_cache"], inputs["v_cache"]),
        causal_p=True,
        sm_scale_p=scale,
    )


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    defined_rows=defined_rows,
    relations=pod_relations,
    tolerances=TOLERANCES,
    kernels={"flashinfer": Kernel(flashinfer_backends, flashinfer_ground_truth)},
)
