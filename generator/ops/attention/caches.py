"""Caches of keys and values as the interface declares them: layout, dtype, scales."""

from __future__ import annotations

import torch

from generator.testing.definition import Case, Definition

# of caches in 8 bits: no powers of 2, and yet a code of four bits times one of these is
# exact in bfloat16, to which kernels of latent attention round it
_USUAL = {"k": 0.3125, "v": 0.6875, "ckv": 0.6875, "kpe": 0.4375}
# of a case with another sm_scale
_OTHER = {"k": 0.8125, "v": 1.375, "ckv": 0.40625, "kpe": 0.8125}


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


def drawn_scale(case: Case, name: str) -> float:
    """Return what a case's cache `k`, `v`, `ckv` or `kpe` is divided by to be stored."""
    return (_OTHER if "scale" in case.params else _USUAL)[name]


def stored_scales(definition: Definition) -> list[str]:
    """Return the inputs that stored caches are multiplied by: `k_scale` and others."""
    return [f"{n}_scale" for n in _USUAL if f"{n}_scale" in definition.interface.inputs]
