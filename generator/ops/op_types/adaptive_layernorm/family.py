"""Diffusion transformers: each image's or video's own scale and shift."""

from __future__ import annotations

import random

from generator.ops.family import Axis, Spec, Tensor
from generator.ops.reference_text import reference_text
from generator.ops.workloads.captured import CapturedWorkload
from generator.ops.workloads.structure import MEMORY_LIMIT, Structure
from generator.ops.workloads.tokens import LLAMA

ROWS, EACH = ("batch_size", "seq_len", "hidden_size"), ("batch_size", "hidden_size")
# hidden_size: models
SIZES = {
    1152: ("pixart-sigma-xl", "dit-xl-2"),
    1536: ("wan2.1-t2v-1.3b", "stable-diffusion-3.5-medium"),
    2432: ("stable-diffusion-3.5-large",),
    3072: ("flux.1-dev", "hunyuan-video", "qwen-image", "wan2.2-ti2v-5b"),
    5120: ("wan2.1-t2v-14b",),
}


def specs() -> tuple[Spec, ...]:
    """Return the definitions of the family."""
    return tuple(norm_spec(size, models) for size, models in SIZES.items())


def norm_spec(size: int, models: tuple[str, ...]) -> Spec:
    """Return the definition for one length of rows."""
    return Spec(
        name=f"adaptive_layernorm_h{size}",
        description=(
            "Layer norm without weights, eps 1e-06, times 1 + gain plus shift: both are of"
            " a sample's condition, a time step or a text, and the same for all its"
            " patches. In float32, rounded once to bfloat16."
        ),
        op_type="adaptive_layernorm",
        tags=tuple(f"model:{model}" for model in models),
        axes={
            "batch_size": Axis("Images or videos."),
            "seq_len": Axis("Patches of each."),
            "hidden_size": Axis("Length of a row.", size),
        },
        inputs={
            "hidden_states": Tensor(ROWS, "bfloat16", "Rows of patches."),
            "gain": Tensor(EACH, "bfloat16", "What 1 is added to, and multiplies."),
            "shift": Tensor(EACH, "bfloat16", "What is added then."),
        },
        outputs={"output": Tensor(ROWS, "bfloat16", "The modulated rows.")},
        reference=reference_text("adaptive_layernorm", "adaptive_layernorm"),
        captured_from=LLAMA,
        captured_op_type="gemm",
        structure=patches,
        fits=patches_fit,
    )


def patches(spec: Spec, captured: CapturedWorkload, rng: random.Random) -> Structure:
    """Return one image, or two where guidance asks for both, of as many patches."""
    axes = {"batch_size": rng.choice((1, 2)), "seq_len": captured.axes["M"]}
    return Structure(axes)


def patches_fit(spec: Spec, captured: CapturedWorkload) -> bool:
    """Return whether a float32 copy of the rows of two images fits in memory."""
    return 8 * captured.axes["M"] * spec.const("hidden_size") <= MEMORY_LIMIT
