"""PyTorch's own CUDA kernels (cuBLAS): production kernels where no other exists."""

from __future__ import annotations

from generator.ground_truth.interface import Library

PYTORCH = Library("pytorch", "PyTorch", "torch", "torch", oldest=(2, 8))
