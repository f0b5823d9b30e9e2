"""Workloads whose only length is a batch's tokens: those of captured gemms."""

from __future__ import annotations

import random

from generator.ops.family import Spec
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure

DEEPSEEK = "gemm_n256_k7168"
LLAMA = "gemm_n28672_k4096"
QWEN = "gemm_n2048_k4096"


def tokens(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return as many tokens as the captured gemm had rows; all tensors are random."""
    return Structure({"num_tokens": captured.axes["M"]})


def tokens_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of each input and output fits in memory."""
    tensors = (*spec.inputs.values(), *spec.outputs.values())
    return all(
        4 * size_of(spec, tensor.shape or (), captured.axes["M"]) <= MEMORY_LIMIT
        for tensor in tensors
    )


def size_of(spec: Spec, shape: tuple[str, ...], length: int) -> int:
    """Return the elements of a tensor whose variable axes are all of a length."""
    size = 1
    for axis in shape:
        size *= spec.axes[axis].value or length
    return size
