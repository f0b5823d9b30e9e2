"""Reference tests of op_type pod.

Rendered: don't edit. `gen-tests --op-type pod` renders this file anew.

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
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.attention.oracle
# bounds: generator.ops.attention.tolerances
# relations: generator.ops.op_types.pod.relations

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


# ---- the interfaces

INTERFACE_POD_CAUSAL = Interface(
    inputs={
        "q_p": "bfloat16[q_len, num_qo_heads, head_dim]",
        "k_p": "bfloat16[kv_len, num_kv_heads, head_dim]",
        "v_p": "bfloat16[kv_len, num_kv_heads, head_dim]",
        "q_d": "bfloat16[batch_size, num_qo_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "kv_indptr": "int32[len_indptr]",
        "kv_indices": "int32[num_kv_indices]",
        "kv_last_page_len": "int32[batch_size]",
        "sm_scale": "float32",
    },
    outputs={
        "output_p": "bfloat16[q_len, num_qo_heads, head_dim]",
        "output_d": "bfloat16[batch_size, num_qo_heads, head_dim]",
    },
    constraints=(
        "len_indptr == batch_size + 1",
        "num_kv_indices == kv_indptr[-1].item()",
        "kv_len >= 1",
    ),
)

# ---- the tests


class PodTests(GroundTruthsAgree, matches("flashinfer"), MatchesRecorded, Metamorphic):
    """What the tests of pod share."""

    op_type = "pod"
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
# (2) the kernel multiplies weights in bfloat16, off by 1.6e-3 of themselves, root mean
# square.


# Attention of one sequence's prefill over contiguous keys and, in the same call, of a
# batch of decodes over a paged cache: two calls that share nothing but sm_scale. 32
# query heads share num_kv_heads KV heads. The prefill's mask is causal and aligned
# bottom-right: query i of q_len sees keys 0 ... kv_len - q_len + i. A sequence has
# (pages - 1) * page_size + kv_last_page_len keys, none where it has no pages. A query
# that sees no key gives output 0.
# stage:prefill, stage:decode, fi_api:flashinfer.pod.PODWithPagedKVCacheWrapper, tp:1
# Tolerances:
#   output    source      rtol     atol    NMSE   reason
#   output_p  oracle      0.00391  1e-05*  1e-05  (1)
#   output_p  flashinfer  0.01     0.008   2e-05  (2)
#   output_d  oracle      0.00391  1e-05*  1e-05  (1)
#   output_d  flashinfer  0.01     0.008   2e-05  (2)
def reference_pod_causal():
    import math

    import torch


    @torch.no_grad()
    def run(
        q_p: torch.Tensor,
        k_p: torch.Tensor,
        v_p: torch.Tensor,
        q_d: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        kv_indptr: torch.Tensor,
        kv_indices: torch.Tensor,
        kv_last_page_len: torch.Tensor,
        sm_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        output_p = prefill(q_p, k_p, v_p, sm_scale)

        page_size = k_cache.shape[1]
        # What a sequence without keys returns.
        output_d = torch.zeros_like(q_d)
        bounds = kv_indptr.tolist()
        last_page_lens = kv_last_page_len.tolist()
        for b in range(len(q_d)):
            if bounds[b] == bounds[b + 1]:
                continue
            pages = kv_indices[bounds[b] : bounds[b + 1]]
            # Only the first last_page_lens[b] slots of the last page are filled.
            kv_len = (len(pages) - 1) * page_size + last_page_lens[b]
            keys = k_cache[pages].flatten(0, 1)[:kv_len]
            values = v_cache[pages].flatten(0, 1)[:kv_len]
            # One query, which stands at the last key: it sees all of them.
            output_d[b] = prefill(q_d[b : b + 1], keys, values, sm_scale)[0]
        return output_p, output_d


    def prefill(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sm_scale: float
    ) -> torch.Tensor:
        """Attend causally: the last query stands at the last key."""
        q_len, num_qo_heads, head_dim = q.shape
        kv_len, num_kv_heads, _ = k.shape
        group_size = num_qo_heads // num_kv_heads

        # Queries that stand before the first key see none, and give 0.
        output = torch.zeros_like(q)
        first = max(q_len - kv_len, 0)
        query_positions = torch.arange(first, q_len, device=q.device) + (kv_len - q_len)
        key_positions = torch.arange(kv_len, device=q.device)
        future = key_positions[None, :] > query_positions[:, None]  # [queries, kv_len]

        # Query heads h * group_size ... (h + 1) * group_size - 1 share KV head h.
        queries = q[first:].float().reshape(-1, num_kv_heads, group_size, head_dim)
        logits = torch.einsum("qhgd,khd->hgqk", queries, k.float()) * sm_scale
        logits.masked_fill_(future, -math.inf)
        attended = torch.einsum("hgqk,khd->qhgd", logits.softmax(dim=-1), v.float())
        output[first:] = attended.flatten(1, 2).to(q.dtype)
        return output

    return run


class PodCausalBase(PodTests):
    reference = staticmethod(reference_pod_causal)
    interface = INTERFACE_POD_CAUSAL
    axes = {"num_qo_heads": 32, "head_dim": 128, "page_size": 64}

class TestPodCausalH32Kv4D128Ps64(PodCausalBase):
    name = "pod_causal_h32_kv4_d128_ps64"  # model:qwen3-30b-a3b
    axes = {"num_kv_heads": 4}
    sha256 = "28fb9ec07311c53a0457652e3e440ae4b4a4dda31297380c7f1c93cf9ecbb4fa"

class TestPodCausalH32Kv8D128Ps64(PodCausalBase):
    name = "pod_causal_h32_kv8_d128_ps64"  # model:llama-3.1-8b
    axes = {"num_kv_heads": 8}
    sha256 = "dba19e7e96a7366d17b0e877defcde2d962df4ba7da569ec412fcfb24d2cd786"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
