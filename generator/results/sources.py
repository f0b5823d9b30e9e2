"""Names of sources, parsed: `flashinfer/fa2`, `recorded:flashinfer/fa2`.

A comparison of two sources has the names of both, `flashinfer/fa2 ~ sglang/triton`.
"""

from __future__ import annotations

from kernel_judge.provider import providers
from kernel_judge.source_names import METAMORPHIC, is_pair

ORACLE = "oracle"
OWN_TESTS = "its own tests"
MODEL = "model"
"""A model of transformers, `model:llama-3.1-8b`, in a stage of which it runs."""

_PYTORCH = "pytorch"
_RECORDED = "recorded"
_LAYERS = ("sglang/native", "recorded:sglang/native")
_NO_KERNELS = (ORACLE, OWN_TESTS, MODEL, METAMORPHIC.rstrip(":"))


def is_ground_truth(source: str) -> bool:
    """Return whether a source is production code, or a recording of a kernel."""
    return not is_pair(source) and _provider(source) not in _NO_KERNELS


def is_layer(source: str) -> bool:
    """Return whether a source is SGLang's PyTorch code: an implementation, no kernel."""
    return source in _LAYERS


def is_kernel(source: str) -> bool:
    """Return whether a source is a production kernel, or a recording of one."""
    return is_ground_truth(source) and not is_layer(source)


def is_live_kernel(source: str) -> bool:
    """Return whether a source is a production kernel that was called, no recording of it.

    One of a provider that nobody here knows is a kernel by its author's word alone.
    """
    is_known = _provider(source) in providers()
    return is_kernel(source) and not is_recorded(source) and is_known


def is_model(source: str) -> bool:
    """Return whether a source is a model of transformers."""
    return _provider(source) == MODEL


def is_recorded(source: str) -> bool:
    """Return whether a source is a recording of a production kernel."""
    return _provider(source) == _RECORDED


def backs_verified(source: str) -> bool:
    """Return whether a reference that agrees with a source may be status:verified.

    Of the ground truths all but live PyTorch, though it is the one of a gemm: it runs on
    the CPU as well, where it is no production kernel. A recording of it is from a GPU.
    """
    return is_ground_truth(source) and _provider(source) != _PYTORCH


def _provider(source: str) -> str:
    """Return what stands before the backend: `flashinfer`, `recorded`, `oracle`."""
    return source.replace(":", "/").split("/")[0]
