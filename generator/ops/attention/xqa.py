"""FlashInfer's XQA: a second kernel of paged decode, which returns no LSE."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import torch

from generator.ops.attention.caches import is_head_major
from generator.ops.attention.variant import variant_of
from generator.ops.paging import input_table, kv_lengths
from generator.testing.definition import Backend, Definition
from generator.testing.tolerance import Override, Tolerance

XQA = "xqa"
_SYMBOL = "flashinfer.decode.xqa_batch_decode_with_kv_cache"
_PAGE_SIZES = (16, 32, 64, 128)
_LONGEST_HEAD = 512
# query heads that share a KV head: rows of one tile, of which long heads have fewer
_MOST_SHARING, _MOST_SHARING_LONG, _LONG_HEAD = 32, 16, 256
# semaphores first, which must be zero and are left so, then partial outputs: those of
# an H200's 132 blocks, each of 32 heads of 512 in 2 bytes, are below 5 MiB
_SCRATCH_BYTES = 8 * 2**20 + 32 * 2**20

_SOURCE = f"flashinfer/{XQA}"
_ROUNDINGS = (
    "the kernel rounds each weight, its tile's scale and their product; up to 4 partial "
    "outputs, and their sums but the first; where it splits a sequence, those of the "
    "parts and again of the whole: 3 + 4 + 4 roundings and ours"
)
_IN_8_BITS = (
    "on SM90 the kernel rounds queries to e4m3, and 448 times each weight: elements are "
    "off by 2^-4/sqrt(3)/1.44 = 2.5e-2 of themselves, root mean square, and so are "
    "logits, of their deviation"
)
XQA_TOLERANCES = (
    Override(
        "output",
        Tolerance(1e-2, 0.1, 0.1, 0.8, cosine=0.95, norm_ratio=(0.9, 1.1)),
        f"{_IN_8_BITS}: here of 40, by 1. Of 70 to 200 keys the two largest logits are "
        "13 apart on average: in a fifth of the rows by less than 2.8, twice the error "
        "of their difference, which moves a third of the weight: 5e-2 of the power",
        source=_SOURCE,
        case="extreme-logits",
        constant="kve4m3",
    ),
    Override(
        "output",
        Tolerance(1e-2, 0.1, 5e-3, 0.95, cosine=0.997, norm_ratio=(0.98, 1.02)),
        f"{_IN_8_BITS}: of 2, by 5e-2, which all weights are off by: with their own "
        "rounding 5.6e-2 of an output's root mean square, of 0.9 at most. 1 of 20 is off "
        "by more than 0.1, and the NMSE is 3.1e-3 at most",
        source=_SOURCE,
        constant="kve4m3",
    ),
    Override(
        "output",
        Tolerance(rtol=1.5e-3, atol=1.5e-3, nmse=5e-7),
        f"{_ROUNDINGS}. Each is an eighth of what it is in bfloat16: 2^-11 at most, and "
        "12 times 2^-22/3/2.07 make 4.6e-7 of the power",
        source=_SOURCE,
        constant="fp16",
    ),
    Override(
        "output",
        Tolerance(rtol=1.2e-2, atol=1.2e-2, nmse=3e-5),
        f"{_ROUNDINGS}. Each is by 2^-8/sqrt(3)/1.44 = 1.6e-3 of what it rounds, root "
        "mean square: 12 times its square are 2.9e-5 of the power. An output near 0, of "
        "parts of 0.5 that cancel, is off by 2.6e-3, of which atol is 5. An output that "
        "is one value has 3 of 2^-8 at most: rtol",
        source=_SOURCE,
    ),
)


def xqa_backend(definition: Definition) -> Backend:
    """Return the backend of a decode, with its limit where it has no such kernel."""
    limit = _limit(definition)
    return Backend(XQA, min_sm=90, lacks=("lse",), limit=limit, symbol=_SYMBOL)


def _limit(definition: Definition) -> str:
    """Return why XQA has no kernel for a definition, empty where it has one."""
    axes, variant = definition.axes, variant_of(definition)
    page_size, dim = axes["page_size"], axes["head_dim"]
    sharing = axes["num_qo_heads"] // axes["num_kv_heads"]
    most = _MOST_SHARING if dim <= _LONG_HEAD else _MOST_SHARING_LONG
    if page_size not in _PAGE_SIZES:
        return f"pages have 16, 32, 64 or 128 tokens, not {page_size}"
    if dim % 16 or dim > _LONGEST_HEAD:
        return f"heads have a multiple of 16 up to {_LONGEST_HEAD} elements, not {dim}"
    if sharing > most:
        return f"at most {most} query heads of {dim} share a KV head, not {sharing}"
    if variant.soft_cap:
        return "logits have no cap"
    if variant.slopes:
        return "logits have no bias of ALiBi"
    dtype = definition.interface.input_specs["q"].dtype
    if dtype not in ("float16", "bfloat16"):
        return f"queries are float16 or bfloat16, not {dtype}"
    return ""


@cache
def _scratch(device: torch.device) -> torch.Tensor:
    # not the wrappers' scratch, which they leave full of partial outputs
    return torch.zeros(_SCRATCH_BYTES, dtype=torch.uint8, device=device)


def xqa_decode(
    definition: Definition, inputs: Mapping[str, Any]
) -> tuple[torch.Tensor, None]:
    """Call XQA; return output [batch_size, num_qo_heads, head_dim], as q, and no LSE.

    A cache in 8 bits has one scale of all keys and one of all values.
    """
    from flashinfer.decode import xqa_batch_decode_with_kv_cache

    q, table = inputs["q"], input_table(inputs)
    page_size = definition.axes["page_size"]
    lengths = kv_lengths(table, page_size)
    starts, counts = table.indptr.tolist(), table.indptr.diff().tolist()
    # one row of pages a sequence; those past its end are not read
    pages = torch.zeros((len(counts), max(counts)), dtype=torch.int32, device=q.device)
    for row, (start, count) in enumerate(zip(starts, counts, strict=False)):
        pages[row, :count] = table.indices[start : start + count]
    output = xqa_batch_decode_with_kv_cache(
        q,
        (inputs["k_cache"], inputs["v_cache"]),
        _scratch(q.device),
        pages,
        torch.tensor(lengths, dtype=torch.int32, device=q.device),
        max(lengths),
        bmm1_scale=float(inputs["sm_scale"] * inputs.get("k_scale", 1.0)),
        bmm2_scale=float(inputs.get("v_scale", 1.0)),
        window_left=variant_of(definition).window_left,
        sinks=inputs.get("sinks"),
        kv_layout="HND" if is_head_major(definition) else "NHD",
    )
    return output, None
