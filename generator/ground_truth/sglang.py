"""SGLang: where FlashInfer cannot serve."""

from __future__ import annotations

from generator.ground_truth.interface import Library

SGLANG = Library("sglang", "SGLang", "sglang", "sglang", oldest=(0, 5))
