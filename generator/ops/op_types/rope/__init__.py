"""Rotary position embedding from a cosine and sine cache."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "rope",
    name_tokens={"d": "head_size", "rd": "rotary_dim"},
    name_words={"neox": ("is_neox", True), "gptj": ("is_neox", False)},
    constants={"is_neox": True},
)
