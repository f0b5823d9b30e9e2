"""kv_store: a cache whose slots, or blocks, get other rows; the rest of it stays.

Bits are copied; to e4m3 a row is divided by its scale and rounded once, to NVFP4 it has
codes and scales of blocks (`nvfp4`), of which no kernel is called. The production kernels are PyTorch's indexed copies, SGLang's store_cache and its store of latents.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from generator.ops.far_factors import far_apart
from generator.ops.float8 import e4m3_values
from generator.ops.op_types.kv_store.nvfp4 import nvfp4_rows
from generator.ops.op_types.kv_store.relations import store_relations
from kernel_judge.comparison.tolerance import EXACT, Override, Tolerance
from kernel_judge.definition import LIMITS, Backend, Case, Definition
from kernel_judge.inputs.memory import dtype_of, shape_of
from kernel_judge.inputs.seeded_inputs import Stream
from kernel_judge.subject import Kernel, Op

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
