"""Stand-ins on a CPU for FlashInfer's quantisers, which templates' `init` calls.

Their kernels run on Blackwell only: on Hopper some return what was in memory. The
values are those of FlashInfer's own references of them, the scales in the layout of
the kernel. Sources: `flashinfer.trace.templates.quantize`; the 128x4 layout is that of
cuBLAS, "Scaling Factors Layouts".
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensor


def _references() -> Any:
    return importlib.import_module("flashinfer.trace.templates.quantize")


# of their names in FlashInfer: an import writes the functions below into a reference
def _fp4_quantize_reference(*arguments: Any) -> Any:
    return _references()._fp4_quantize_reference(*arguments)


def _mxfp8_quantize_reference(*arguments: Any) -> Any:
    return _references()._mxfp8_quantize_reference(*arguments)


def swizzled(scales: torch.Tensor) -> torch.Tensor:
    """Return scales [rows, columns] in the 128x4 layout: padded, of 2 dimensions."""
    rows, columns = -(-scales.shape[0] // 128) * 128, -(-scales.shape[1] // 4) * 4
    padded = torch.zeros(rows, columns, dtype=torch.uint8, device=scales.device)
    padded[: scales.shape[0], : scales.shape[1]] = scales.view(torch.uint8)
    tiles = padded.reshape(rows // 128, 4, 32, columns // 4, 4)
    return tiles.permute(0, 3, 2, 1, 4).reshape(rows, columns)


def fp4_quantize(
    input: torch.Tensor,
    global_scale: torch.Tensor | None = None,
    sf_vec_size: int = 16,
    sf_use_ue8m0: bool = False,
    is_sf_swizzled_layout: bool = True,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return packed values uint8 [..., K / 2] and the bits of their scales."""
    if isinstance(input, FakeTensor):
        # weights of 257 experts, a call each: their shapes are all that is asked
        like = input[..., ::2].to(torch.uint8)
        flat = like.reshape(-1, like.shape[-1])[:, :: sf_vec_size // 2]
        return like, swizzled(flat) if is_sf_swizzled_layout else flat
    values, scales = _fp4_quantize_reference(
        input, global_scale, sf_vec_size, sf_use_ue8m0
    )
    flat = scales.reshape(-1, scales.shape[-1])
    return values, swizzled(flat) if is_sf_swizzled_layout else flat.view(torch.uint8)


def nvfp4_quantize(
    a: torch.Tensor, a_global_sf: torch.Tensor, *, sf_vec_size: int = 16, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return packed values and the bits of their scales, in the 128x4 layout."""
    return fp4_quantize(a, a_global_sf, sf_vec_size)


def mxfp8_quantize(
    input: torch.Tensor, is_sf_swizzled_layout: bool = True, **options: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return values float8_e4m3fn and the bits of their scales, of 1 dimension."""
    values, scales = _mxfp8_quantize_reference(input)
    return values, (swizzled(scales) if is_sf_swizzled_layout else scales).reshape(-1)


def get_batch_indices_positions(
    append_indptr: torch.Tensor, seq_lens: torch.Tensor, nnz: int, **buffers: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sequence of each appended token and its place there, int32 [nnz]."""
    token = torch.arange(nnz, device=append_indptr.device)
    batch = torch.searchsorted(append_indptr[1:].contiguous(), token, right=True)
    place = seq_lens[batch] - append_indptr[batch + 1] + token
    return batch.to(torch.int32), place.to(torch.int32)


_ALL = (fp4_quantize, nvfp4_quantize, mxfp8_quantize, get_batch_indices_positions)


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Let FlashInfer's functions of these names be those above, where it is installed."""
    try:
        package = importlib.import_module("flashinfer")
    except (Exception, SystemExit):  # noqa: BLE001
        # an init that needs it says so
        yield
        return
    functions: dict[str, Any] = {f.__name__: f for f in _ALL}
    with mock.patch.multiple(package, **functions):
        yield
