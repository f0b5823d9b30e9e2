"""Grouped-query attention over a paged cache: decode and causal prefill."""

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
    "gqa_paged",
    name_tokens={**HEAD_TOKENS, "ps": "page_size"},
    figures=HEAD_FIGURES,
    name_words={
        **MASK_WORDS,
        "custom": ("custom_mask", True),
        "kve4m3": ("kve4m3", True),
        "qe4m3": ("qe4m3", True),
    },
    name_constants=MASK_NUMBERS,
    variant_constants=(*MASK_CONSTANTS, "custom_mask", "kve4m3", "qe4m3"),
)
