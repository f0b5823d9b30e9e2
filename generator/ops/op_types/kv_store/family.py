"""Caches of models, written token by token as the scheduler chose the slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.op_types.kv_store.workloads import (
    blocks,
    few_slots_fit,
    slots,
    slots_fit,
)
from generator.ops.reference_text import reference_text
from generator.ops.workloads.tokens import DEEPSEEK, LLAMA, QWEN

BF16, E4M3 = "bfloat16", "float8_e4m3fn"
PLAIN, HND, SCALED = "store_kv", "store_kv_hnd", "store_kv_e4m3"
COPY, MLA, NVFP4 = "copy_cache_blocks", "store_mla_kv", "nvfp4_store_kv"
# heads, length of one: models, tp, whose batches
NVFP4_CACHES: dict[tuple[int, int], tuple[tuple[str, ...], int, str]] = {
    (8, 128): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
    (4, 128): (("qwen3-30b-a3b",), 1, QWEN),
    (8, 64): (("gpt-oss-120b", "gpt-oss-20b"), 1, QWEN),
    (1, 128): (("llama-3.1-70b", "llama-3.3-70b"), 8, LLAMA),
}
_BLOCK = 16
# kind, kv heads, head_dim, page_size: models, tp, whose batches
CACHES: dict[tuple[str, int, int, int], tuple[tuple[str, ...], int, str]] = {
    (PLAIN, 8, 128, 0): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
    (PLAIN, 4, 128, 0): (("qwen3-30b-a3b",), 1, QWEN),
    (PLAIN, 8, 64, 0): (("gpt-oss-120b", "gpt-oss-20b"), 1, QWEN),
    (PLAIN, 1, 128, 0): (("llama-3.1-70b",), 8, LLAMA),
    (HND, 8, 128, 16): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
    (HND, 8, 64, 64): (("gpt-oss-120b", "gpt-oss-20b"), 1, QWEN),
    (SCALED, 8, 128, 0): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
    (SCALED, 4, 128, 0): (("qwen3-30b-a3b",), 1, QWEN),
    (COPY, 8, 128, 16): (("llama-3.1-8b", "qwen3-8b"), 1, LLAMA),
}
_WHAT = {
    PLAIN: "Keys and values of tokens written to the cache's slots that slot_mapping"
    " names, each token in one slot for all its heads.",
    HND: "Keys and values of tokens written to the slots that slot_mapping names. Slot s"
    " is place s mod page_size of page s // page_size, and a page has all places of its"
    " first head before those of the next.",
    SCALED: "Keys and values of tokens, divided by k_scale and v_scale, limited to"
    " -448 and 448 and rounded once to e4m3, written to the slots that slot_mapping"
    " names.",
    COPY: "Blocks of the cache copied to other places, as when sequences that share a"
    " prefix diverge: block targets[i] becomes block sources[i].",
    NVFP4: "Keys and values of tokens in NVFP4, written to the slots that slot_mapping"
    " names: each 16 elements of a head share a float8 scale, the largest magnitude over 6"
    " times k_scale or v_scale, at most 448; codes are rounded to the nearest, ties to"
    " even, and stand for code * scale * k_scale or v_scale.",
    MLA: "Latents and their rotary parts written side by side to the cache's slots that"
    " slot_mapping names.",
}
_REST = " What is not written stays as it is."


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    latent = ("deepseek-v3", "deepseek-r1", "kimi-k2")
    return (
        *(cache_spec(*sizes, *others) for sizes, others in CACHES.items()),
        mla_spec(512, 64, latent),
        *(
            nvfp4_spec(heads, dim, models, tp, batches)
            for (heads, dim), (models, tp, batches) in NVFP4_CACHES.items()
        ),
    )


def instance(
    name: str, sizes: Mapping[str, int], constants: Mapping[str, Any], model: str
) -> Spec | None:
    """Return the definition of a name for a model, None for another kind's."""
    if name.startswith(NVFP4):
        return nvfp4_spec(sizes["kv"], sizes["d"], (model,), 1, LLAMA)
    if name.startswith(MLA):
        return mla_spec(sizes["ckv"], sizes["kpe"], (model,))
    kind = next((k for k in (HND, SCALED, COPY, PLAIN) if name.startswith(k)), "")
    if not kind:
        return None
    page_size = sizes.get("ps", 0)
    return cache_spec(kind, sizes["kv"], sizes["d"], page_size, (model,), 1, LLAMA)


def cache_spec(
    kind: str,
    heads: int,
    dim: int,
    page_size: int,
    models: tuple[str, ...],
    tp: int,
    captured_from: str,
) -> Spec:
    """Return the definition of one kind for a cache of so many heads."""
    shapes = {
        PLAIN: ("num_slots", "num_kv_heads", "head_dim"),
        SCALED: ("num_slots", "num_kv_heads", "head_dim"),
        HND: ("num_pages", "num_kv_heads", "page_size", "head_dim"),
        COPY: ("num_pages", "page_size", "num_kv_heads", "head_dim"),
    }
    dtype = E4M3 if kind == SCALED else BF16
    caches = {
        f"{name}_cache": Tensor(shapes[kind], dtype, f"The cache of {what}.")
        for name, what in (("k", "keys"), ("v", "values"))
    }
    paged = {
        "num_pages": Axis("Pages of a cache."),
        "page_size": Axis("Tokens of a page.", page_size),
    }
    heads_axes = {
        "num_kv_heads": Axis("Heads of keys and of values.", heads),
        "head_dim": Axis("Length of a head.", dim),
    }
    if kind == COPY:
        count = ("num_copies",)
        inputs = {
            **caches,
            "sources": Tensor(count, "int64", "Blocks to copy."),
            "targets": Tensor(count, "int64", "Where to, each once, and no source."),
        }
        axes = {"num_copies": Axis("Blocks to copy."), **paged, **heads_axes}
    else:
        rows = ("num_tokens", "num_kv_heads", "head_dim")
        inputs = {
            "k": Tensor(rows, BF16, "Keys of the tokens."),
            "v": Tensor(rows, BF16, "Values of the tokens."),
            **caches,
            "slot_mapping": Tensor(
                ("num_tokens",), "int64", "A slot each, none twice."
            ),
            **(_SCALES if kind == SCALED else {}),
        }
        place = paged if kind == HND else {"num_slots": Axis("Slots of a cache.")}
        axes = {"num_tokens": Axis("Number of tokens."), **place, **heads_axes}
    page = f"_ps{page_size}" if page_size else ""
    return Spec(
        name=f"{kind}_kv{heads}_d{dim}{page}",
        description=_WHAT[kind] + _REST,
        op_type="kv_store",
        tags=(
            *(f"model:{model}" for model in models),
            *([f"tp:{tp}"] if tp > 1 else []),
        ),
        axes=axes,
        inputs=inputs,
        outputs={
            f"{name}_out": Tensor(tensor.shape, dtype, "The cache afterwards.")
            for name, tensor in caches.items()
        },
        reference=reference_text("kv_store", kind),
        captured_from=captured_from,
        captured_op_type="gemm",
        structure=blocks if kind == COPY else slots,
        fits=slots_fit,
    )


_SCALES = {
    f"{name}_scale": Tensor(None, "float32", f"The unit of {what}, over 0.")
    for name, what in (("k", "stored keys"), ("v", "stored values"))
}


def mla_spec(latent: int, rope: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for latents of a length."""
    cache = Tensor(("num_slots", "row_dim"), BF16, "The cache.")
    return Spec(
        name=f"{MLA}_ckv{latent}_kpe{rope}",
        description=_WHAT[MLA] + _REST,
        op_type="kv_store",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "num_slots": Axis("Slots of the cache."),
            "latent_dim": Axis("Length of a latent.", latent),
            "rope_dim": Axis("Length of a rotary part.", rope),
            "row_dim": Axis("Length of a slot.", latent + rope),
        },
        inputs={
            "latent": Tensor(("num_tokens", "latent_dim"), BF16, "Latents."),
            "rope": Tensor(("num_tokens", "rope_dim"), BF16, "Rotary parts."),
            "kv_cache": cache,
            "slot_mapping": Tensor(
                ("num_tokens",), "int64", "A slot each, none twice."
            ),
        },
        outputs={"kv_cache_out": Tensor(cache.shape, BF16, "The cache afterwards.")},
        constraints=("row_dim == latent_dim + rope_dim",),
        reference=reference_text("kv_store", MLA),
        captured_from=DEEPSEEK,
        captured_op_type="gemm",
        structure=slots,
        fits=slots_fit,
    )


def nvfp4_spec(
    heads: int, dim: int, models: tuple[str, ...], tp: int, captured_from: str
) -> Spec:
    """Return the definition for a cache in NVFP4 of so many heads."""
    rows = ("num_tokens", "num_kv_heads", "head_dim")
    caches: dict[str, Tensor] = {}
    for name, what in (("k", "keys"), ("v", "values")):
        caches[f"{name}_cache"] = Tensor(
            ("num_slots", "num_kv_heads", "head_bytes"),
            "int8",
            f"The codes of {what}: two e2m1 in a byte, the first in its lower half.",
        )
        caches[f"{name}_scale_cache"] = Tensor(
            ("num_slots", "num_kv_heads", "num_blocks"), E4M3, f"Scales of {what}."
        )
    return Spec(
        name=f"{NVFP4}_kv{heads}_d{dim}",
        description=_WHAT[NVFP4] + _REST,
        op_type="kv_store",
        tags=(
            *(f"model:{model}" for model in models),
            "quantization:nvfp4",
            f"tp:{tp}",
        ),
        axes={
            "num_tokens": Axis("Number of tokens."),
            "num_slots": Axis("Slots of a cache."),
            "num_kv_heads": Axis("Heads of keys and of values.", heads),
            "head_dim": Axis("Length of a head.", dim),
            "head_bytes": Axis("Bytes of a head.", dim // 2),
            "num_blocks": Axis(f"Blocks of {_BLOCK} of a head.", dim // _BLOCK),
        },
        inputs={
            "k": Tensor(rows, BF16, "Keys of the tokens."),
            "v": Tensor(rows, BF16, "Values of the tokens."),
            **caches,
            "slot_mapping": Tensor(
                ("num_tokens",), "int64", "A slot each, none twice."
            ),
            **_SCALES,
        },
        outputs={
            f"{name}_out": Tensor(tensor.shape, tensor.dtype, "The cache afterwards.")
            for name, tensor in caches.items()
        },
        constraints=(
            "head_bytes == head_dim // 2",
            f"num_blocks == head_dim // {_BLOCK}",
        ),
        reference=reference_text("kv_store", NVFP4),
        captured_from=captured_from,
        captured_op_type="gemm",
        structure=slots,
        fits=few_slots_fit,
    )
