"""Caches of keys and values as the interface declares them: layout, dtype, scales."""

from __future__ import annotations

from typing import Any

import torch

from kernel_judge.definition import Case, Definition

# of what is stored in 8 bits: no powers of 2, and yet a code of four bits times one of
# these is exact in bfloat16, to which kernels of latent attention round it
_USUAL = {"q": 0.34375, "k": 0.3125, "v": 0.6875, "ckv": 0.6875, "kpe": 0.4375}
# of a case with another sm_scale
_OTHER = {"q": 0.6875, "k": 0.8125, "v": 1.375, "ckv": 0.40625, "kpe": 0.8125}


def is_head_major(definition: Definition) -> bool:
    """Return whether a page holds the tokens of a head side by side (layout HND)."""
    spec = definition.interface.input_specs.get("k_cache")
    shape = spec.shape if spec is not None else None
    return shape is not None and shape[1] == "num_kv_heads"


def switched(definition: Definition, cache: torch.Tensor) -> torch.Tensor:
    """Return a cache with its layout exchanged for NHD, or NHD for its layout.

    [num_pages, num_kv_heads, page_size, d] ↔ [num_pages, page_size, num_kv_heads, d];
    a cache declared in layout NHD stays as it is.
    """
    return cache.transpose(1, 2) if is_head_major(definition) else cache


def drawn_scale(definition: Definition, case: Case, name: str) -> Any:
    """Return what a case's `q`, `k`, `v`, `ckv` or `kpe` is divided by to be stored.

    A number, or float32 [heads] where each head has its own; 1 where the definition has
    no such input.
    """
    spec = definition.interface.input_specs.get(f"{name}_scale")
    if spec is None:
        return 1.0
    scale = (_OTHER if "scale" in case.params else _USUAL)[name]
    if spec.shape is None:
        return scale
    heads = torch.arange(definition.axes[spec.shape[0]])
    return scale * (1.0 + 0.25 * (heads % 4).float())


def stored(values: torch.Tensor, scale: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return values [..., heads, d] divided by a number or [heads], of a dtype."""
    # most definitions have no scale: a copy of a cache takes as long as drawing it
    is_one = not isinstance(scale, torch.Tensor) and scale == 1.0
    quotients: torch.Tensor = values if is_one else values / over_heads(scale)
    if dtype.itemsize == 1:
        # versions of torch differ in what they make of more than the largest: NaN or it
        most = torch.finfo(dtype).max
        quotients = quotients.clamp(-most, most)
    return quotients.to(dtype)


def drawn_dtype(scale: Any, dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which to draw what `stored` takes.

    That is bfloat16 where it is stored as it is drawn, for half the bytes; elsewhere
    float32, of which a stale slot's multiple is rounded once.
    """
    is_one = not isinstance(scale, torch.Tensor) and scale == 1.0
    return dtype if is_one and dtype == torch.bfloat16 else torch.float32


def over_heads(scale: Any) -> Any:
    """Return a scale that multiplies [..., heads, d]: a number, or [heads, 1]."""
    return scale[:, None] if isinstance(scale, torch.Tensor) else scale


def stored_scales(definition: Definition) -> list[str]:
    """Return the inputs that stored values are multiplied by: `k_scale` and others."""
    return [f"{n}_scale" for n in _USUAL if f"{n}_scale" in definition.interface.inputs]
