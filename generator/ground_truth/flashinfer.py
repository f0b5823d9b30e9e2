"""FlashInfer: the first choice."""

from __future__ import annotations

from generator.ground_truth.interface import Library

# the wrappers' plan() takes the arguments that the adapters pass from 0.6 on
FLASHINFER = Library(
    "flashinfer", "FlashInfer", "flashinfer-python", "flashinfer", oldest=(0, 6)
)
