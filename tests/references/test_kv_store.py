"""Reference tests of op_type kv_store.

Rendered: don't edit. `gen-tests --op-type kv_store` renders this file anew.

Each class tests one definition: what its `run()` returns for the inputs of each case in
`cases`, and of the dataset's workloads, is compared with
- SGLang's layers, live, in a process of their own
- PyTorch's CUDA kernel, live, on a CUDA device
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

import math
import sys
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.op_types.kv_store.nvfp4 import nvfp4_rows
from generator.ops.op_types.kv_store.relations import store_relations
from generator.running.harness import (
    GroundTruthsAgree,
    MatchesRecorded,
    Metamorphic,
    main,
    matches,
)
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition, Interface
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

# ---- the op: cases, inputs, float64 oracle, production kernels
# oracle: generator.ops.float8, generator.ops.op_types.kv_store.nvfp4
# relations: generator.ops.op_types.kv_store.relations

_MOVED = "bits are copied, none is computed"
_ROUNDED = (
    "both sides round nearly the same quotient once to e4m3, whose float32 form is off by "
    "2^-24 of itself: to neighbours at most, 2^-3 of a value or a step of 2^-9 apart, and "
    "that is rare"
)
# values are below 2.45: two to five quotients in a hundred lie beyond 448
_SCALES = {"k_scale": 0.0047, "v_scale": 0.0043}
_FEW_BITS = (
    "quotients of float32 are divided again and rounded to float8 and to e2m1: both sides "
    "divide as IEEE 754 says, to the same bits"
)
# values are below 5.5: blocks whose largest is above 5.1 have a scale of more than 448
_NVFP4_SCALES = {"k_scale": 0.0019, "v_scale": 0.0017}
_STEP = Tolerance(rtol=2**-3, atol=2**-9, nmse=1e-5)
TOLERANCES = (
    Override("k_cache_out", _STEP, _ROUNDED, constant="quantized"),
    Override("v_cache_out", _STEP, _ROUNDED, constant="quantized"),
    Override("k_cache_out", EXACT, _MOVED),
    Override("v_cache_out", EXACT, _MOVED),
    Override("kv_cache_out", EXACT, _MOVED),
    Override("k_scale_cache_out", EXACT, _FEW_BITS),
    Override("v_scale_cache_out", EXACT, _FEW_BITS),
)


def cases(definition: Definition) -> list[Case]:
    """Return one row in a small cache, a full cache, and many rows in a large one."""
    sizes = {
        "one-row": ("small", 1, 16),
        "some-rows": ("small", 9, 48),
        "full-cache": ("small", 32, 32),
        "batch": ("medium", 67, 192),
        "past-limits": (LIMITS, 4_157, 8_448),
        "long-batch": ("large", 16_384, 65_536),
    }
    if "sources" in definition.interface.inputs:
        sizes |= {"full-cache": ("small", 16, 32), "past-limits": (LIMITS, 131, 548)}
        sizes["long-batch"] = ("large", 512, 2_048)
    usual = [
        Case(name, size, _axes(definition, rows, slots))
        for name, (size, rows, slots) in sizes.items()
    ]
    if "k_scale" in definition.interface.inputs:
        # what lies in a cache of NVFP4 may be anything as well
        far = ("k", "k_scale", "k_scale_cache", "v", "v_scale", "v_scale_cache")
        usual += far_apart(usual[1], *far)
    return usual


def _axes(definition: Definition, rows: int, slots: int) -> dict[str, int]:
    inputs = definition.interface.inputs
    if "sources" in inputs:
        return {"num_copies": rows, "num_pages": slots}
    if "page_size" in definition.axes:
        pages = -(-slots // definition.axes["page_size"])
        return {"num_tokens": rows, "num_pages": pages}
    return {"num_tokens": rows, "num_slots": slots}


def make_inputs(definition: Definition, case: Case, stream: Stream) -> dict[str, Any]:
    """Return rows, caches and where the rows go: the last slot, the first, others.

    Rows and caches are bfloat16, or e4m3 caches; slots and blocks int64, none twice.
    Some quotients of rows and scales lie beyond 448.
    """
    lengths = {**definition.axes, **case.axes}
    inputs: dict[str, Any] = {}
    for name, spec in definition.interface.input_specs.items():
        if spec.shape is None:
            inputs[name] = (_NVFP4_SCALES if _is_nvfp4(definition) else _SCALES)[name]
        elif spec.dtype == "int8":
            drawn = stream.child(name).integer_tensor(
                -128, 128, math.prod(shape_of(spec, lengths))
            )
            inputs[name] = drawn.to(torch.int8).view(shape_of(spec, lengths))
        elif spec.dtype != "int64":
            values = stream.child(name).values(shape_of(spec, lengths))
            inputs[name] = values.to(dtype_of(spec.dtype))
    count = lengths.get("num_slots", lengths.get("num_pages", 0))
    if "slot_mapping" in definition.interface.inputs:
        count *= 1 if "num_slots" in lengths else lengths["page_size"]
        slots = _ends_first(stream.child("slots").permutation(count))
        inputs["slot_mapping"] = slots[: lengths["num_tokens"]].clone()
    else:
        copies = lengths["num_copies"]
        order = _ends_first(stream.child("blocks").permutation(count))
        # a block may be copied to several places
        sources = order[-max(copies - 2, 1) :].repeat(3)[:copies]
        inputs |= {"sources": sources, "targets": order[:copies].clone()}
    return {name: inputs[name] for name in definition.interface.inputs}


def _is_nvfp4(definition: Definition) -> bool:
    return "k_scale_cache" in definition.interface.inputs


def _ends_first(order: torch.Tensor) -> torch.Tensor:
    """Return a permutation, int64, with the last place first and place 0 behind it."""
    ends = torch.tensor([len(order) - 1, 0])
    return torch.cat([ends, order[(order > 0) & (order < len(order) - 1)]])


def oracle(definition: Definition, inputs: dict[str, Any]) -> Any:
    """Return the caches afterwards, float64, of each slot the row that it has."""
    if "sources" in inputs:
        pairs = list(
            zip(*(inputs[n].tolist() for n in ("sources", "targets")), strict=True)
        )
        return tuple(_copied(inputs[name].double(), pairs) for name in _CACHES)
    row_of = {slot: row for row, slot in enumerate(inputs["slot_mapping"].tolist())}
    if "latent" in inputs:
        parts = [inputs["latent"].double(), inputs["rope"].double()]
        return _stored(inputs["kv_cache"].double(), torch.hstack(parts), row_of)
    caches = []
    if _is_nvfp4(definition):
        for name in ("k", "v"):
            codes, units = nvfp4_rows(inputs[name], inputs[f"{name}_scale"])
            for kind, rows in (("cache", codes), ("scale_cache", units)):
                cache = inputs[f"{name}_{kind}"].double()
                caches.append(_stored(cache, rows, row_of))
        return tuple(caches)
    for name in _CACHES:
        rows, cache = inputs[name[0]].double(), inputs[name].double()
        if f"{name[0]}_scale" in inputs:
            rows = e4m3_values(rows / inputs[f"{name[0]}_scale"])
        if "page_size" in definition.axes:
            by_slot = cache.transpose(1, 2)
            full = _stored(by_slot.flatten(0, 1), rows, row_of).view(by_slot.shape)
            caches.append(full.transpose(1, 2).contiguous())
        else:
            caches.append(_stored(cache, rows, row_of))
    return tuple(caches)


_CACHES = ("k_cache", "v_cache")


def _stored(
    cache: torch.Tensor, rows: torch.Tensor, row_of: dict[int, int]
) -> torch.Tensor:
    """Return the slots of a cache, each its row's values or its own."""
    return torch.stack(
        [rows[row_of[s]] if s in row_of else cache[s] for s in range(len(cache))]
    )


def _copied(cache: torch.Tensor, pairs: list[tuple[int, int]]) -> torch.Tensor:
    """Return the blocks of a cache, each the one that it became."""
    became = {target: source for source, target in pairs}
    return torch.stack([cache[became.get(b, b)] for b in range(len(cache))])


def sglang_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return SGLang's CUDA kernel for slots, and its Triton one for latents."""
    names = definition.interface.inputs
    if "latent" in names:
        return (Backend("triton", needs=("triton",)),)
    if "sources" in names or "page_size" in definition.axes or "k_scale" in names:
        return ()
    return (Backend("jit", needs=("tvm_ffi",)),)


def sglang_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the caches that were given, which SGLang's kernels write to.

    Slot 0 is written as well: without the argument these kernels leave it, as padding.
    """
    slots = inputs["slot_mapping"]
    if backend == "triton":
        from sglang.kernels.ops.kvcache.mla_buffer import set_mla_kv_buffer_triton

        cache, parts = inputs["kv_cache"], (inputs["latent"], inputs["rope"])
        each = [part.unsqueeze(1) for part in parts]
        buffer = cache.unsqueeze(1)
        set_mla_kv_buffer_triton(buffer, slots, *each, reserved_skip_index=-1)
        return cache
    from sglang.kernels.ops.kvcache.kvcache import store_cache

    names = ("k", "v", "k_cache", "v_cache")
    rows = [inputs[name].flatten(1) for name in names]
    store_cache(*rows, slots, reserved_skip_index=-1)
    return inputs["k_cache"], inputs["v_cache"]


def pytorch_backends(definition: Definition) -> tuple[Backend, ...]:
    """Return PyTorch's indexed copy; scaled stores are several kernels of it."""
    names = definition.interface.inputs
    return () if "k_scale" in names else (Backend("index_put"),)


def pytorch_ground_truth(
    definition: Definition, inputs: dict[str, Any], backend: str
) -> Any:
    """Return the caches that were given, which an indexed assignment writes to."""
    if "sources" in inputs:
        caches = inputs["k_cache"], inputs["v_cache"]
        for cache in caches:
            cache[inputs["targets"]] = cache[inputs["sources"]]
        return caches
    slots = inputs["slot_mapping"]
    if "latent" in inputs:
        rows: torch.Tensor = inputs["kv_cache"]
        size = inputs["latent"].shape[1]
        rows[slots, :size], rows[slots, size:] = inputs["latent"], inputs["rope"]
        return rows
    for name in ("k", "v"):
        cache = inputs[f"{name}_cache"]
        if "page_size" in definition.axes:
            page_size = definition.axes["page_size"]
            cache[slots // page_size, :, slots % page_size] = inputs[name]
        else:
            cache[slots] = inputs[name]
    return inputs["k_cache"], inputs["v_cache"]


OP = Op(
    cases=cases,
    make_inputs=make_inputs,
    oracle=oracle,
    relations=store_relations,
    tolerances=TOLERANCES,
    kernels={
        "sglang": Kernel(sglang_backends, sglang_ground_truth),
        "pytorch": Kernel(pytorch_backends, pytorch_ground_truth),
    },
)


# ---- the interfaces

INTERFACE_COPY_CACHE_BLOCKS = Interface(
    inputs={
        "k_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "sources": "int64[num_copies]",
        "targets": "int64[num_copies]",
    },
    outputs={
        "k_cache_out": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
        "v_cache_out": "bfloat16[num_pages, page_size, num_kv_heads, head_dim]",
    },
)
INTERFACE_NVFP4_STORE_KV = Interface(
    inputs={
        "k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "k_cache": "int8[num_slots, num_kv_heads, head_bytes]",
        "k_scale_cache": "float8_e4m3fn[num_slots, num_kv_heads, num_blocks]",
        "v_cache": "int8[num_slots, num_kv_heads, head_bytes]",
        "v_scale_cache": "float8_e4m3fn[num_slots, num_kv_heads, num_blocks]",
        "slot_mapping": "int64[num_tokens]",
        "k_scale": "float32",
        "v_scale": "float32",
    },
    outputs={
        "k_cache_out": "int8[num_slots, num_kv_heads, head_bytes]",
        "k_scale_cache_out": "float8_e4m3fn[num_slots, num_kv_heads, num_blocks]",
        "v_cache_out": "int8[num_slots, num_kv_heads, head_bytes]",
        "v_scale_cache_out": "float8_e4m3fn[num_slots, num_kv_heads, num_blocks]",
    },
    constraints=("head_bytes == head_dim // 2", "num_blocks == head_dim // 16"),
)
INTERFACE_STORE_KV_E4M3 = Interface(
    inputs={
        "k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "k_cache": "float8_e4m3fn[num_slots, num_kv_heads, head_dim]",
        "v_cache": "float8_e4m3fn[num_slots, num_kv_heads, head_dim]",
        "slot_mapping": "int64[num_tokens]",
        "k_scale": "float32",
        "v_scale": "float32",
    },
    outputs={
        "k_cache_out": "float8_e4m3fn[num_slots, num_kv_heads, head_dim]",
        "v_cache_out": "float8_e4m3fn[num_slots, num_kv_heads, head_dim]",
    },
)
INTERFACE_STORE_KV_HND = Interface(
    inputs={
        "k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "k_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "slot_mapping": "int64[num_tokens]",
    },
    outputs={
        "k_cache_out": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
        "v_cache_out": "bfloat16[num_pages, num_kv_heads, page_size, head_dim]",
    },
)
INTERFACE_STORE_KV = Interface(
    inputs={
        "k": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "v": "bfloat16[num_tokens, num_kv_heads, head_dim]",
        "k_cache": "bfloat16[num_slots, num_kv_heads, head_dim]",
        "v_cache": "bfloat16[num_slots, num_kv_heads, head_dim]",
        "slot_mapping": "int64[num_tokens]",
    },
    outputs={
        "k_cache_out": "bfloat16[num_slots, num_kv_heads, head_dim]",
        "v_cache_out": "bfloat16[num_slots, num_kv_heads, head_dim]",
    },
)
INTERFACE_STORE_MLA_KV = Interface(
    inputs={
        "latent": "bfloat16[num_tokens, latent_dim]",
        "rope": "bfloat16[num_tokens, rope_dim]",
        "kv_cache": "bfloat16[num_slots, row_dim]",
        "slot_mapping": "int64[num_tokens]",
    },
    outputs={"kv_cache_out": "bfloat16[num_slots, row_dim]"},
    constraints=("row_dim == latent_dim + rope_dim",),
)

# ---- the tests


class KvStoreTests(
    GroundTruthsAgree, matches("sglang", "pytorch"), MatchesRecorded, Metamorphic
):
    """What the tests of kv_store share."""

    op_type = "kv_store"
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
# (1) bits are copied, none is computed.
# (2) quotients of float32 are divided again and rounded to float8 and to e2m1.
# (3) both sides round nearly the same quotient once to e4m3, whose float32 form is off
# by 2^-24 of itself.


# Blocks of the cache copied to other places, as when sequences that share a prefix
# diverge: block targets[i] becomes block sources[i]. What is not written stays as it
# is.
# model:llama-3.1-8b, model:qwen3-8b
# Tolerances:
#   output       source                   rtol   atol  NMSE  reason
#   k_cache_out  oracle, sglang, pytorch  exact              (1)
#   v_cache_out  oracle, sglang, pytorch  exact              (1)
def reference_copy_cache_blocks():
    import torch


    @torch.no_grad()
    def run(
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        sources: torch.Tensor,
        targets: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[targets] = k_cache[sources]
        v_cache_out[targets] = v_cache[sources]
        return k_cache_out, v_cache_out

    return run


class TestCopyCacheBlocksKv8D128Ps16(KvStoreTests):
    name = "copy_cache_blocks_kv8_d128_ps16"
    reference = staticmethod(reference_copy_cache_blocks)
    interface = INTERFACE_COPY_CACHE_BLOCKS
    axes = {"page_size": 16, "num_kv_heads": 8, "head_dim": 128}
    sha256 = "e847e08f0f1a12cad67aa9bb1eaa5a313ddaec4a56e9294b401bb39167570caa"


# Keys and values of tokens in NVFP4, written to the slots that slot_mapping names: each
# 16 elements of a head share a float8 scale, the largest magnitude over 6 times k_scale
# or v_scale, at most 448; codes are rounded to the nearest, ties to even, and stand for
# code * scale * k_scale or v_scale. What is not written stays as it is.
# quantization:nvfp4
# Tolerances:
#   output             source                   rtol   atol  NMSE  reason
#   k_cache_out        oracle, sglang, pytorch  exact              (1)
#   k_scale_cache_out  oracle, sglang, pytorch  exact              (2)
#   v_cache_out        oracle, sglang, pytorch  exact              (1)
#   v_scale_cache_out  oracle, sglang, pytorch  exact              (2)
def reference_nvfp4_store_kv():
    import torch

    BLOCK = 16
    MAX = 6.0
    MAX_SCALE = 448.0


    @torch.no_grad()
    def run(
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        k_scale_cache: torch.Tensor,
        v_cache: torch.Tensor,
        v_scale_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
        k_scale: float,
        v_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        def stored(
            rows: torch.Tensor, cache: torch.Tensor, scales: torch.Tensor, scale: float
        ) -> tuple[torch.Tensor, torch.Tensor]:
            # Of a Python number CUDA multiplies by the inverse, which moves ties.
            divisor, largest_code = torch.tensor((scale, MAX), device=rows.device)
            blocks = (rows.float() / divisor).unflatten(-1, (-1, BLOCK))
            largest = blocks.abs().amax(dim=-1)
            units = (largest / largest_code).clamp(max=MAX_SCALE).to(torch.float8_e4m3fn)
            # Codes are of the scale as it is stored; where it is zero they are zeros.
            unit = units.float()[..., None]
            scaled = torch.where(unit == 0, torch.zeros_like(blocks), blocks / unit)
            codes = e2m1(scaled).flatten(-2)
            # The first of two elements is in the lower half of a byte.
            packed = codes[..., 0::2] | (codes[..., 1::2] << 4)
            cache_out, scales_out = cache.clone(), scales.clone()
            cache_out[slot_mapping] = packed.view(torch.int8)
            # Bytes are moved: an index assignment does not know float8.
            scales_out.view(torch.uint8)[slot_mapping] = units.view(torch.uint8)
            return cache_out, scales_out

        return (
            *stored(k, k_cache, k_scale_cache, k_scale),
            *stored(v, v_cache, v_scale_cache, v_scale),
        )


    def e2m1(values: torch.Tensor) -> torch.Tensor:
        magnitude = values.abs().clamp(max=MAX)
        # The step is 0.5 below 2, 1 below 4 and 2 above; round() takes ties to even.
        low = (magnitude * 2).round()
        middle = magnitude.round() + 2
        high = (magnitude / 2).round() + 4
        codes = torch.where(magnitude < 2, low, torch.where(magnitude < 4, middle, high))
        return codes.to(torch.uint8) | (torch.signbit(values).to(torch.uint8) << 3)

    return run


class Nvfp4StoreKvBase(KvStoreTests):
    reference = staticmethod(reference_nvfp4_store_kv)
    interface = INTERFACE_NVFP4_STORE_KV

class TestNvfp4StoreKvKv1D128(Nvfp4StoreKvBase):
    name = "nvfp4_store_kv_kv1_d128"  # model:llama-3.1-70b, model:llama-3.3-70b, tp:8
    axes = {"num_kv_heads": 1, "head_dim": 128, "head_bytes": 64, "num_blocks": 8}
    sha256 = "32ab450f882e119c7bbfc45652fb6e28358bf59e49a0234c80df0f6473f7ccb1"

class TestNvfp4StoreKvKv4D128(Nvfp4StoreKvBase):
    name = "nvfp4_store_kv_kv4_d128"  # model:qwen3-30b-a3b, tp:1
    axes = {"num_kv_heads": 4, "head_dim": 128, "head_bytes": 64, "num_blocks": 8}
    sha256 = "b70eaf8047c540f94e4eb0c609ac41e4239c037fdd44d629bd12c150d30367f5"

class TestNvfp4StoreKvKv8D128(Nvfp4StoreKvBase):
    name = "nvfp4_store_kv_kv8_d128"  # model:llama-3.1-8b, model:qwen3-8b, tp:1
    axes = {"num_kv_heads": 8, "head_dim": 128, "head_bytes": 64, "num_blocks": 8}
    sha256 = "fe29009443c61d0f0d5a09de853b8afa3d3fa4d91edd3d35987559cea30d7b38"

class TestNvfp4StoreKvKv8D64(Nvfp4StoreKvBase):
    name = "nvfp4_store_kv_kv8_d64"  # model:gpt-oss-120b, model:gpt-oss-20b, tp:1
    axes = {"num_kv_heads": 8, "head_dim": 64, "head_bytes": 32, "num_blocks": 4}
    sha256 = "799c5756dd0c24f72a82028efa02415c28dc940b8cfb48c8cb683b00de835ab0"


# Keys and values of tokens, divided by k_scale and v_scale, limited to -448 and 448 and
# rounded once to e4m3, written to the slots that slot_mapping names. What is not
# written stays as it is.
# Tolerances:
#   output       source                   rtol   atol     NMSE   reason
#   k_cache_out  oracle, sglang, pytorch  0.125  0.00195  1e-05  (3)
#   v_cache_out  oracle, sglang, pytorch  0.125  0.00195  1e-05  (3)
def reference_store_kv_e4m3():
    import torch

    E4M3_MAX = 448.0


    @torch.no_grad()
    def run(
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
        k_scale: float,
        v_scale: float,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        def stored(cache: torch.Tensor, rows: torch.Tensor, scale: float) -> torch.Tensor:
            # Of a Python number CUDA multiplies by the inverse, which moves ties of float8.
            divisor = torch.tensor(scale, dtype=torch.float32, device=rows.device)
            scaled = (rows.float() / divisor).clamp(-E4M3_MAX, E4M3_MAX)
            codes = scaled.to(torch.float8_e4m3fn)
            out = cache.clone()
            # Bytes are moved: an index assignment does not know float8.
            out.view(torch.uint8)[slot_mapping] = codes.view(torch.uint8)
            return out

        return stored(k_cache, k, k_scale), stored(v_cache, v, v_scale)

    return run


class StoreKvE4m3Base(KvStoreTests):
    reference = staticmethod(reference_store_kv_e4m3)
    interface = INTERFACE_STORE_KV_E4M3
    axes = {"head_dim": 128}
    constants = ("quantized",)
    QUANTIZED = True  # "e4m3" in the name

class TestStoreKvE4m3Kv4D128(StoreKvE4m3Base):
    name = "store_kv_e4m3_kv4_d128"  # model:qwen3-30b-a3b
    axes = {"num_kv_heads": 4}
    sha256 = "c46a7f8287297bc34740ae58aa09a3bf82acc7e3c47cabdcfffd00ea74386931"

class TestStoreKvE4m3Kv8D128(StoreKvE4m3Base):
    name = "store_kv_e4m3_kv8_d128"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"num_kv_heads": 8}
    sha256 = "b5f3752072a2b8f1563e8477cb194e1f5df900f47484ee31fd7fd105cb381f4b"


# Keys and values of tokens written to the slots that slot_mapping names. Slot s is
# place s mod page_size of page s // page_size, and a page has all places of its first
# head before those of the next. What is not written stays as it is.
# Tolerances: those of reference_copy_cache_blocks.
def reference_store_kv_hnd():
    import torch


    @torch.no_grad()
    def run(
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        page_size = k_cache.shape[2]
        pages, places = slot_mapping // page_size, slot_mapping % page_size

        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[pages, :, places] = k
        v_cache_out[pages, :, places] = v
        return k_cache_out, v_cache_out

    return run


class StoreKvHndBase(KvStoreTests):
    reference = staticmethod(reference_store_kv_hnd)
    interface = INTERFACE_STORE_KV_HND
    axes = {"num_kv_heads": 8}

class TestStoreKvHndKv8D128Ps16(StoreKvHndBase):
    name = "store_kv_hnd_kv8_d128_ps16"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"page_size": 16, "head_dim": 128}
    sha256 = "4a54a2e58924d84ba05bcae47392f91044c77b306890aa29df42ade5aad90790"

class TestStoreKvHndKv8D64Ps64(StoreKvHndBase):
    name = "store_kv_hnd_kv8_d64_ps64"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"page_size": 64, "head_dim": 64}
    sha256 = "46483bb1867a37fd90bf726daceffd64de9443b8d2b5722080dacfe17ec0f93f"


# Keys and values of tokens written to the cache's slots that slot_mapping names, each
# token in one slot for all its heads. What is not written stays as it is.
# Tolerances: those of reference_copy_cache_blocks.
def reference_store_kv():
    import torch


    @torch.no_grad()
    def run(
        k: torch.Tensor,
        v: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        k_cache_out, v_cache_out = k_cache.clone(), v_cache.clone()
        k_cache_out[slot_mapping] = k
        v_cache_out[slot_mapping] = v
        return k_cache_out, v_cache_out

    return run


class StoreKvBase(KvStoreTests):
    reference = staticmethod(reference_store_kv)
    interface = INTERFACE_STORE_KV

class TestStoreKvKv1D128(StoreKvBase):
    name = "store_kv_kv1_d128"  # model:llama-3.1-70b, tp:8
    axes = {"num_kv_heads": 1, "head_dim": 128}
    sha256 = "a8e94bffadb4148d3e0f2ab1a295c18655b3ea97bd6864c4e5b961ebbaa266d7"

class TestStoreKvKv4D128(StoreKvBase):
    name = "store_kv_kv4_d128"  # model:qwen3-30b-a3b
    axes = {"num_kv_heads": 4, "head_dim": 128}
    sha256 = "d01f1e78a062c38af9d2570e97acae4507ffcf40607463d996ee558662090b20"

class TestStoreKvKv8D128(StoreKvBase):
    name = "store_kv_kv8_d128"  # model:llama-3.1-8b, model:qwen3-8b
    axes = {"num_kv_heads": 8, "head_dim": 128}
    sha256 = "621bbc8c86e4555414882feb8ef914805831638356eab235040be237da72d7c7"

class TestStoreKvKv8D64(StoreKvBase):
    name = "store_kv_kv8_d64"  # model:gpt-oss-120b, model:gpt-oss-20b
    axes = {"num_kv_heads": 8, "head_dim": 64}
    sha256 = "d32b6e876bf13360d6fc1fe05c6b6f8de6a1882515d782077bfd8dee1942857a"


# Latents and their rotary parts written side by side to the cache's slots that
# slot_mapping names. What is not written stays as it is.
# model:deepseek-v3, model:deepseek-r1, model:kimi-k2
# Tolerances:
#   output        source                   rtol   atol  NMSE  reason
#   kv_cache_out  oracle, sglang, pytorch  exact              (1)
def reference_store_mla_kv():
    import torch


    @torch.no_grad()
    def run(
        latent: torch.Tensor,
        rope: torch.Tensor,
        kv_cache: torch.Tensor,
        slot_mapping: torch.Tensor,
    ) -> torch.Tensor:
        kv_cache_out = kv_cache.clone()
        kv_cache_out[slot_mapping] = torch.cat((latent, rope), dim=1)
        return kv_cache_out

    return run


class TestStoreMlaKvCkv512Kpe64(KvStoreTests):
    name = "store_mla_kv_ckv512_kpe64"
    reference = staticmethod(reference_store_mla_kv)
    interface = INTERFACE_STORE_MLA_KV
    axes = {"latent_dim": 512, "rope_dim": 64, "row_dim": 576}
    sha256 = "02c455690b3a39b52111b19d0408c8d50d46ca45b48e8908dcc9264efd6cba77"


# fmt: on
if __name__ == "__main__":
    raise SystemExit(main(__file__, sys.argv[1:]))
