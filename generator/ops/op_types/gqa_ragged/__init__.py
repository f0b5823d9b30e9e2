"""Grouped-query attention over contiguous keys: causal prefill."""

from __future__ import annotations

from generator.ops.attention.naming import (
    HEAD_FIGURES,
    HEAD_TOKENS,
    MASK_CONSTANTS,
    MASK_NUMBERS,
    MASK_WORDS,
)
from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "gqa_ragged",
    name_tokens=HEAD_TOKENS,
    figures=HEAD_FIGURES,
    name_words=MASK_WORDS,
    name_constants=MASK_NUMBERS,
    variant_constants=MASK_CONSTANTS,
)
