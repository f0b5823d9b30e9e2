"""RoPE of patches by their place in an image or a video: two or three axes."""

from __future__ import annotations

from generator.ops.spec import OpSpec

SPEC = OpSpec(
    "rope_grid",
    name_tokens={"h": "num_heads", "d": "head_dim"},
    name_constants={"theta": "theta", "t": "temporal", "y": "height", "x": "width"},
    constants={"theta": None},
    variant_constants=("temporal", "height", "width"),
    absent={"sglang": "SGLang's rotations of videos need its package multimodal_gen"},
)
