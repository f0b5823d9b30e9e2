"""Cases of attention that only solutions are asked: no keys, few keys, smallest codes.

A kernel may divide its work by the number of pages, or launch no program at all. Production
kernels are not asked: FlashInfer's planning of such a batch is not part of its contract.

Of few keys with large logits one often outweighs all others by more than 2^128, at any
place: whoever takes the largest logit of some keys for that of all overflows float32.

Codes of float8_e4m3fn below 2^-6 are subnormal. Where a cache, and queries, are stored in
it, most codes are so in one case, and their scales as much larger.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from generator.ops.attention.caches import drawn_scale
from generator.ops.attention.cases import logit_params, paged_case
from generator.ops.attention.low_logits import low_logits
from generator.ops.attention.sequences import is_prefill
from generator.ops.far_factors import with_factors
from kernel_judge.definition import LIMITS, Case, Definition

_SEQUENCES = 5
_FEW = (*range(4, 12), *range(4, 12), *range(4, 12))


# draws have a deviation of 1 or 2, and the least code is 2^-9
_TO_SUBNORMAL = -7.0
# deviation of the logits of keys that nobody else outweighs
_FAR_LOGITS = 1_000.0
# less than that FlashInfer's kernels take for masked
_MASKED = 5e4


def of_solutions(definition: Definition) -> list[Case]:
    """Return the cases of decodes without a key and with few, and those of smallest codes."""
    return [*_of_decodes(definition), *_of_smallest_codes(definition)]


def _of_smallest_codes(definition: Definition) -> list[Case]:
    """Return the case whose stored codes are mostly subnormal, where a scale belongs to each."""
    specs = definition.interface.input_specs
    moved: dict[str, float] = {}
    for scale in (name for name in specs if name.endswith("_scale")):
        stem = scale.removesuffix("_scale")
        for name in (stem, f"{stem}_cache"):
            if name in specs and specs[name].dtype == "float8_e4m3fn":
                moved |= {name: _TO_SUBNORMAL, scale: -_TO_SUBNORMAL}
    if not moved:
        return []
    lengths = [5, 33, 70]
    queries = lengths if is_prefill(definition) else [1] * len(lengths)
    page_size = definition.axes["page_size"]
    case = paged_case("smallest-codes", "small", queries, lengths, page_size)
    return [replace(case, moved=moved)]


def _of_decodes(definition: Definition) -> list[Case]:
    """Return the decodes without a key and with few; none of a prefill."""
    if is_prefill(definition):
        return []
    page_size = definition.axes["page_size"]

    def decodes(name: str, lengths: Sequence[int]) -> Case:
        return paged_case(name, "small", [1] * len(lengths), lengths, page_size)

    few = decodes("extreme-logits-of-few", _FEW)
    extreme = logit_params("extreme-logits")
    return [
        decodes("no-keys", [0] * _SEQUENCES),
        replace(few, params={**few.params, **extreme}),
    ]


def far_of_attention(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the declared cases of far factors that FlashInfer's kernels can be asked.

    Not queries against an sm_scale far from usual: these kernels give masked keys a
    logit of -5e4 before it (flashinfer-ai/flashinfer issue 4451), which a small one leaves
    a weight, and a large one the exponential of a rounding, which may be infinite. Scales
    of stored queries and keys are multiplied with it. Instead, large logits have an
    sm_scale halfway between two numbers of float16: a log-sum-exp of 100 shows 2^-11 of it.

    Of one key half of the logits are far below 0: a largest logit that begins at 0, or at
    -100, or stands for masked keys, is larger than all there are.
    """
    asked = [case for case in declared if case.moved and not _is_of_queries(case)]
    asked += [*_lone_keys(definition, declared), *low_logits(definition, declared)]
    if not any(_is_of_queries(case) for case in declared):
        return asked
    halfway = math.log2(1.0 + 2.0**-11)
    large = [case for case in declared if case.name == "extreme-logits"]
    return asked + [
        with_factors(case, "scale-of-many-bits", sm_scale=halfway) for case in large
    ]


def _lone_keys(definition: Definition, declared: Sequence[Case]) -> list[Case]:
    """Return the case of one key, which every op declares first, with far logits.

    As FlashInfer stores it, a product of a query and a key is above -5e4, which its
    kernels give masked keys and begin a largest one at (`math::inf` in math.cuh, `m` in
    prefill.cuh): six deviations are. sm_scale and stored scales come after.
    """
    first, axes = declared[0], definition.axes
    if "q_std" not in first.params:
        return []
    latent = axes.get("head_dim_ckv", 0) + axes.get("head_dim_kpe", 0)
    length = latent or axes.get("qk_dim") or axes["head_dim"]
    # a latent key has two parts, of which one has the smaller scale
    of_q, *of_keys = (
        float(torch.as_tensor(drawn_scale(definition, first, name)).min())
        for name in ("q", "k", "ckv", "kpe")
    )
    most = _MASKED / 6.0 * of_q * min(of_keys) / math.sqrt(length)
    params = {**first.params, "q_std": min(_FAR_LOGITS, most)}
    return [replace(first, name="lone-keys", size=LIMITS, params=params)]


def _is_of_queries(case: Case) -> bool:
    """Return whether sm_scale is moved, and against no scale."""
    others = [name for name in case.moved if name != "sm_scale"]
    return "sm_scale" in case.moved and not any(n.endswith("_scale") for n in others)
