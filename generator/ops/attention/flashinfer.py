"""FlashInfer's attention wrappers: backends, workspace, sinks, ALiBi, ragged prefill."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch

from generator.ops.attention.caches import stored_scales
from generator.ops.attention.variant import has_mask, has_sinks, variant_of
from generator.ops.paging import key_lengths, query_starts
from kernel_judge.definition import Backend, Definition
from kernel_judge.obstacle import Kind
from kernel_judge.skipping import skip

FA2, FA3 = Backend("fa2", min_sm=80), Backend("fa3", min_sm=90, max_sm=90)
# kernels without sinks, whose answer the adapter corrects
PLAIN_SUFFIX = "-plain"
_WITH_SINKS = "outputs rewritten: the kernel has no sinks, the adapter adds their share"
PLAIN = (
    Backend(f"fa2{PLAIN_SUFFIX}", min_sm=80, rewrites=_WITH_SINKS),
    Backend(f"fa3{PLAIN_SUFFIX}", min_sm=90, max_sm=90, rewrites=_WITH_SINKS),
)
_FROM_LAST_KEY = (
    "outputs rewritten: the kernel counts queries from 0, the adapter takes the slope "
    "times their distance from the last key off the LSE"
)
# the size of logits that no case reaches, and a masked key's before the scale
_USUAL, _MASKED = 256.0, -5e4
# a power of two that float32 holds, summed over a tile's keys; what rounding may add to one
_HELD, _ROUNDING = 120.0, math.log2(math.e) * 2.0**-24
# queries of a tile of fa3, 192 for heads of 64
_TILE = 128
# fa2 splits 64 query heads over 4 KV heads into partial outputs of just over 256 MiB
WORKSPACE_BYTES = 512 * 2**20


@cache
def workspace(device: torch.device) -> torch.Tensor:
    """Return the wrappers' scratch buffer: zeros, uint8 [WORKSPACE_BYTES].

    FlashInfer requires zeros before the first call. All calls on a device share it.
    """
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)


def skip_more_queries(kernel: str, queries: int, keys: int) -> None:
    """Skip where a causal kernel of one prefill has no rows for queries without keys."""
    if queries > keys:
        limit = f"{kernel} takes no more queries than keys: {queries} and {keys}"
        skip(Kind.NO_KERNEL, f"flashinfer: {limit}")


def skip_unmasked(
    definition: Definition, inputs: Mapping[str, Any], kernel: str
) -> None:
    """Skip where masked keys keep a weight in a kernel on tensor cores.

    It gives them a logit of -5e4 before the scale (`math::inf` of FlashInfer's math.cuh;
    flashinfer-ai/flashinfer issue 4451): times a small sm_scale, that is a weight. On an
    H100 each of fa3's had exp(-5e4 sm_scale) in LSEs of all 18 definitions asked. Scales
    of stored queries and keys count with sm_scale, and cases move them against it.

    A large sm_scale is as bad: a warp of fa2 without keys takes exp2 of what rounding
    leaves of `s * scale - m * scale` (prefill.cuh) with both of -5e4, half a float32 ulp.
    On an H100 that was exp2(1838) at 1.1e6, and all outputs were NaN.
    """
    masked = _MASKED * inputs["sm_scale"]
    if -masked * _ROUNDING > _HELD and kernel != FA3.name:
        scale = f"sm_scale {inputs['sm_scale']:.3g}"
        limit = f"{kernel} gives masked keys weights that may be infinite: {scale}"
        skip(Kind.NO_KERNEL, f"flashinfer: {limit}")
    if masked > -_USUAL and not stored_scales(definition):
        scale = f"sm_scale {inputs['sm_scale']:.3g}"
        limit = f"{kernel} gives masked keys a logit of {masked:.3g}: {scale}"
        skip(Kind.NO_KERNEL, f"flashinfer: {limit}")


def skip_cleared(
    definition: Definition, inputs: Mapping[str, Any], kernel: str
) -> None:
    """Skip where fa3 clears the LSE of queries behind a tile of queries without keys.

    `store_zero` of FlashInfer's hopper/epilogue.cuh (0.6.18 to 0.7.2) has a tile's two
    threads a query write -inf, the second half of them to the next tile, whose own LSE is
    there before or afterwards: of 24 heads on an H200 three lacked it.
    """
    if kernel != FA3.name or not variant_of(definition).causal:
        return
    keys = key_lengths(inputs, definition.axes.get("page_size"))
    for queries, seen in zip(query_starts(inputs).diff().tolist(), keys, strict=True):
        if seen and queries - seen >= _TILE:
            limit = (
                f"{FA3.name} clears the LSE of queries behind {_TILE} without keys: "
                f"{queries} queries and {seen} keys"
            )
            skip(Kind.NO_KERNEL, f"flashinfer: {limit}")


def planned(definition: Definition, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of plan() that set mask, window, cap, bias, scale, types."""
    variant = variant_of(definition)
    options = {
        "sm_scale": inputs["sm_scale"],
        "q_data_type": inputs["q"].dtype,
        "kv_data_type": inputs.get("k", inputs.get("k_cache")).dtype,
    }
    if options["q_data_type"].itemsize == 1:
        options["o_data_type"] = torch.bfloat16
    if variant.window_left >= 0:
        options["window_left"] = variant.window_left
    if variant.soft_cap:
        options["logits_soft_cap"] = variant.soft_cap
    if variant.slopes:
        options["pos_encoding_mode"] = "ALIBI"
    if has_mask(definition):
        options["custom_mask"] = inputs["custom_mask"]
    return options


def prefill_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return the backends of FlashInfer's prefill wrappers for a definition.

    fa3 has no heads of 512, no mask of the caller's, no ALiBi, and takes a cache in 8
    bits with queries in 8 bits alone, which fa2 does not take. With sinks, the plain kernels come second,
    corrected by the sinks' share of the sum.
    """
    specs = definition.interface.input_specs
    if "q_scale" in specs:
        return (FA3,)
    lacking = (
        definition.axes.get("head_dim") == 512,
        has_mask(definition),
        bool(variant_of(definition).slopes),
        "k_scale" in specs,
    )
    of_dim = (FA2,) if any(lacking) else (FA2, FA3)
    return (*of_dim, *PLAIN) if has_sinks(definition) else counted(definition, of_dim)


def counted(
    definition: Definition, backends: tuple[Backend, ...]
) -> tuple[Backend, ...]:
    """Return backends that say so where the adapter changes the LSE of ALiBi."""
    if not variant_of(definition).slopes:
        return backends
    return tuple(
        b if "lse" in b.lacks else replace(b, rewrites=_FROM_LAST_KEY) for b in backends
    )


def sink_arguments(
    definition: Definition, inputs: Mapping[str, Any], backend: str
) -> dict[str, Any]:
    """Return the arguments of a prefill wrapper that compile it with attention sinks.

    FlashInfer's BatchAttentionWithAttentionSinkWrapper passes these too, but names the
    module alike for all head lengths: two in one process would clash.
    """
    from flashinfer.jit.attention.variants import attention_sink_decl

    dim, windowed = definition.axes["head_dim"], variant_of(definition).window_left >= 0
    dtype = inputs["q"].dtype
    name = str(dtype).removeprefix("torch.")
    return {
        "jit_args": [
            f"prefill_attention_sink_{name}_d{dim}_swa_{windowed}_{backend}",
            *(dtype, dtype, dtype, torch.int32),
            *(dim, dim),
            *(["sink"], ["float"], ["sm_scale"], ["double"]),
            *("AttentionSink", attention_sink_decl[backend]),
        ],
        "jit_kwargs": {"use_sliding_window": windowed},
    }


def with_sinks(
    output: torch.Tensor, lse: torch.Tensor, sinks: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add sinks to attention without them: output [n, heads, d], base-2 LSE [n, heads].

    exp(sink), sinks float32 [heads], joins the sum of exponentials: the output shrinks
    by sigmoid(lse·ln 2 - sink).
    """
    natural = lse * math.log(2.0)
    share = torch.sigmoid(natural - sinks)[..., None]
    total = torch.logaddexp(natural, sinks.expand_as(natural)) / math.log(2.0)
    return (output.float() * share).to(output.dtype), total


def from_last_key(
    definition: Definition, inputs: Mapping[str, Any], lse: torch.Tensor
) -> torch.Tensor:
    """Return the LSE of ALiBi that counts a query's position from the first key.

    float32 [total_q, num_qo_heads], base 2. The kernels count a sequence's queries from
    0, so that a logit is larger by slope · (kv_len - q_len), as is the LSE.
    """
    from flashinfer.utils import get_alibi_slopes

    q_lens = query_starts(inputs).diff()
    lengths = key_lengths(inputs, definition.axes.get("page_size"))
    before = torch.tensor(lengths, device=lse.device) - q_lens
    slopes = get_alibi_slopes(lse.shape[1], lse.device).double()
    rows = before.repeat_interleave(q_lens).double()
    unbiased: torch.Tensor = lse - (rows[:, None] * slopes / math.log(2.0))
    return unbiased.float()


def ragged_prefill(
    definition: Definition,
    inputs: Mapping[str, Any],
    backend: str,
    qk_dim: int,
    vo_dim: int,
) -> Any:
    """Call FlashInfer's batch wrapper for prefill over contiguous keys.

    Returns [total_q, num_qo_heads, vo_dim], of the queries' dtype, and the base-2 LSE, float32
    [total_q, num_qo_heads].
    """
    import flashinfer

    q, k, v, sinks = inputs["q"], inputs["k"], inputs["v"], inputs.get("sinks")
    kernel = backend.removesuffix(PLAIN_SUFFIX)
    skip_unmasked(definition, inputs, kernel)
    skip_cleared(definition, inputs, kernel)
    fused = sinks is not None and kernel == backend
    wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(
        workspace(q.device),
        "NHD",
        backend=kernel,
        **(sink_arguments(definition, inputs, kernel) if fused else {}),
    )
    wrapper.plan(
        inputs["qo_indptr"],
        inputs["kv_indptr"],
        definition.axes["num_qo_heads"],
        definition.axes["num_kv_heads"],
        qk_dim,
        head_dim_vo=vo_dim,
        causal=variant_of(definition).causal,
        **planned(definition, inputs),
    )
    if fused:
        return wrapper.run(q, k, v, sinks, inputs["sm_scale"], return_lse=True)
    answer = wrapper.run(q, k, v, return_lse=True)
    slopes = variant_of(definition).slopes
    if sinks is None and not slopes:
        return answer
    output, lse = answer
    if sinks is not None:
        return with_sinks(output, lse, sinks)
    return output, from_last_key(definition, inputs, lse)
